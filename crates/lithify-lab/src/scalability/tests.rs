//! The published series give the published fits; curves with known parameters give those.

use super::*;

const WIREDTIGER_32: [f64; 48] = [
    1388., 2435., 3604., 4766., 6147., 7731., 9381., 11101., 12662., 14163., 15638., 16845.,
    17773., 19007., 20247., 21052., 21842., 22456., 22813., 23432., 23445., 23900., 24208., 24205.,
    24445., 24143., 24513., 24151., 24179., 24049., 23794., 23726., 23163., 23674., 23018., 23189.,
    23198., 23311., 22882., 22674., 22930., 22729., 22667., 22363., 22596., 21991., 22331., 22102.,
];
const ROCKSDB_32: [f64; 48] = [
    1165., 1908., 2807., 3539., 4695., 6029., 7317., 8512., 9647., 10243., 11385., 12115., 12639.,
    13492., 13770., 14830., 15174., 15713., 15553., 16258., 15985., 16638., 16747., 16674., 16564.,
    16676., 16557., 16315., 16451., 16262., 16340., 16323., 15994., 16014., 16067., 16418., 16211.,
    15847., 15814., 15950., 15813., 16001., 15954., 15609., 15717., 15706., 15591., 15653.,
];
const WIREDTIGER_30: [f64; 20] = [
    1448., 2563., 3793., 5378., 6974., 8799., 10623., 12267., 13883., 15153., 16263., 17671.,
    18600., 19651., 20655., 21369., 21849., 22565., 22917., 23342.,
];

fn from_one(rates: &[f64]) -> Vec<Point> {
    (1..).zip(rates.iter().copied()).collect()
}

fn at(clients: &[u64], rates: &[f64]) -> Vec<Point> {
    clients.iter().copied().zip(rates.iter().copied()).collect()
}

/// Whether a figure is what was published, within its rounding.
fn is(value: f64, published: f64, step: f64) -> bool {
    (value - published).abs() <= step
}

#[test]
fn the_published_cached_series_give_the_published_fits() {
    let wt = fit(&from_one(&WIREDTIGER_32)).expect("fits");
    assert!(is(wt.curve.lambda, 1613.0, 0.5) && is(wt.curve.kappa, 0.00115, 0.00001), "{wt:?}");
    assert_eq!(wt.curve.sigma, 0.0, "super-linear at first: the bound");
    assert!(is(wt.curve.peak_clients().expect("has a peak"), 29.6, 0.05), "{wt:?}");
    assert!(is(wt.curve.most(), 24_200.0, 50.0) && is(wt.r_squared, 0.989, 0.0005), "{wt:?}");
    let rx = fit(&from_one(&ROCKSDB_32)).expect("fits");
    assert!(is(rx.curve.lambda, 1144.0, 0.5) && is(rx.curve.kappa, 0.00119, 0.00001), "{rx:?}");
    assert!(is(rx.curve.peak_clients().expect("has a peak"), 29.0, 0.1), "{rx:?}");
    assert!(is(rx.curve.most(), 16_800.0, 50.0) && is(rx.r_squared, 0.991, 0.0005), "{rx:?}");
    let old = fit(&from_one(&WIREDTIGER_30)).expect("fits");
    assert!(is(old.curve.lambda, 1602.0, 1.0) && is(old.curve.kappa, 0.0009, 0.00001), "{old:?}");
    assert_eq!((rx.curve.sigma, old.curve.sigma), (0.0, 0.0));
}

#[test]
fn the_published_io_bound_series_give_the_published_fits() {
    let ssd = [1, 4, 8, 12, 16, 20, 24];
    let disk = [1, 4, 8, 16, 24];
    let cases: [(Vec<Point>, [f64; 4]); 6] = [
        (at(&ssd, &[945., 3171., 6023., 8075., 9632., 10440., 10500.]), [819., 0., 0.00155, 25.]),
        (at(&ssd, &[843., 2627., 4374., 5435., 6067., 5928., 5762.]), [705., 0.015, 0.0028, 18.7]),
        (at(&disk, &[281., 1244., 1946., 2259., 2458.]), [387., 0.078, 0.0019, 22.]),
        (at(&disk, &[227., 726., 843., 808., 813.]), [273., 0.176, 0.0061, 11.6]),
        (
            at(&ssd, &[3772., 12475., 16689., 18079., 18248., 18328., 17327.]),
            [4202., 0.112, 0.0040, 15.],
        ),
        (
            at(&ssd, &[5077., 18511., 35471., 43105., 55108., 62380., 64190.]),
            [4987., 0.020, 0.0007, 37.6],
        ),
    ];
    for (points, [lambda, sigma, kappa, peak]) in cases {
        // Two of them have five points, which were fitted all the same.
        let curve = fit_any(&points).curve;
        assert!(is(curve.lambda, lambda, 1.0), "{curve:?}");
        assert!(is(curve.sigma, sigma, 0.0006), "{curve:?}");
        assert!(is(curve.kappa, kappa, 0.00006), "{curve:?}");
        assert!(is(curve.peak_clients().expect("has a peak"), peak, 0.5), "{curve:?}");
    }
}

#[test]
fn known_curves_are_found_again() {
    let counts = [1, 2, 3, 4, 6, 8, 12, 16];
    for (sigma, kappa) in [(0.0, 0.0), (0.3, 0.0), (0.0, 0.01), (0.2, 0.02), (0.9, 0.1)] {
        let known = Curve { lambda: 5000.0, sigma, kappa };
        let points: Vec<Point> = counts.iter().map(|n| (*n, known.rate(*n as f64))).collect();
        let found = fit(&points).expect("fits");
        let Curve { lambda, .. } = found.curve;
        assert!(is(lambda, 5000.0, 0.5), "{found:?}");
        assert!(is(found.curve.sigma, sigma, 1e-4), "{found:?}");
        assert!(is(found.curve.kappa, kappa, 1e-4), "{found:?}");
        assert!(found.r_squared > 0.999_999, "{found:?}");
        assert!(found.residuals.iter().all(|(_, residual)| residual.abs() < 1.0), "{found:?}");
    }
    let linear = Curve { lambda: 10.0, sigma: 0.0, kappa: 0.0 };
    assert_eq!((linear.peak_clients(), linear.most()), (None, f64::INFINITY));
    let amdahl = Curve { sigma: 0.1, ..linear };
    assert_eq!((amdahl.peak_clients(), amdahl.most()), (None, 100.0));
}

#[test]
fn ranges_hold_the_fit_and_noise_widens_them() {
    let counts = [1, 2, 3, 4, 6, 8, 12, 16];
    let known = Curve { lambda: 1000.0, sigma: 0.1, kappa: 0.01 };
    let noisy = |part: f64| {
        let noise = [1.0, -0.6, 0.3, -0.9, 0.7, -0.2, 0.5, -0.8];
        let rate = |n: u64| known.rate(n as f64);
        let points: Vec<Point> =
            counts.iter().zip(noise).map(|(n, e)| (*n, rate(*n) * (1.0 + part * e))).collect();
        fit(&points).expect("fits")
    };
    let (calm, loud) = (noisy(0.005), noisy(0.05));
    let width = |fit: &Fit| fit.ranges.peak_clients[1] - fit.ranges.peak_clients[0];
    assert!(width(&calm) < width(&loud), "{calm:?} {loud:?}");
    for fit in [&calm, &loud] {
        let [low, high] = fit.ranges.most;
        assert!((low..=high).contains(&fit.curve.most()), "{fit:?}");
    }
    assert_eq!(noisy(0.05), loud, "deterministic");
}

#[test]
fn too_few_points_and_rates_that_are_none() {
    let points = at(&[1, 2, 3, 4, 5, 5, 5], &[1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]);
    assert_eq!(fit(&points), Err(NoFit::Counts(5)));
    assert!(NoFit::Counts(5).to_string().contains("needs 6"));
    let mut points = from_one(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(fit(&points).is_ok());
    points[3].1 = 0.0;
    assert_eq!(fit(&points), Err(NoFit::Rate));
    points[3] = (0, 4.0);
    assert_eq!(fit(&points), Err(NoFit::Rate));
}
