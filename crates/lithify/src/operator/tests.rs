use super::*;
use crate::base::{Trailer, ValueKind};

fn operands(newest_first: &[(u64, &str)]) -> Operands {
    let mut operands = Operands::default();
    for (sequence, operand) in newest_first {
        operands.push(Trailer::new(*sequence, ValueKind::Merge), operand.as_bytes());
    }
    operands
}

#[test]
fn operands_fold_from_the_oldest_on_whichever_came_first() {
    let append = MergeOperator::append();
    for pushed in
        [operands(&[(9, "c"), (8, "b"), (7, "a")]), operands(&[(7, "a"), (8, "b"), (9, "c")])]
    {
        assert_eq!(append.fold(b"k", Some(b"-"), &pushed).unwrap(), b"-abc");
        assert_eq!(append.fold(b"k", None, &pushed).unwrap(), b"abc");
        assert_eq!(pushed.newest(), Some(Trailer::new(9, ValueKind::Merge)));
    }
    let full = MergeOperator::new("count", |key, value, operands| {
        Some(format!("{key:?} {value:?} {}", operands.len()).into_bytes())
    });
    let folded = full.fold(b"k", None, &operands(&[(2, "x"), (1, "y")])).unwrap();
    assert_eq!(String::from_utf8(folded).unwrap(), "[107] None 2");
}

#[test]
fn what_an_operator_does_wrong_is_an_error_of_its_row() {
    let refused = MergeOperator::add().fold(b"visits", Some(b"1"), &operands(&[(1, "12345678")]));
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Merge);
    assert_eq!(
        error.to_string(),
        "merge: the merge operator \"add\" refuses the operands of a key, \"visits\""
    );
    let panics = MergeOperator::new("panics", |_, _, _| panic!("on purpose"));
    assert_eq!(
        panics.fold(b"k", None, &operands(&[(1, "x")])).unwrap_err().kind(),
        ErrorKind::Merge
    );
    let long = MergeOperator::new("long", |_, _, _| Some(vec![0; VALUE_SIZE_MAX + 1]));
    assert_eq!(long.fold(b"k", None, &operands(&[(1, "x")])).unwrap_err().kind(), ErrorKind::Merge);
    let named: MergeOperator = "mine".parse().unwrap();
    let error = named.fold(b"k", None, &operands(&[(1, "x")])).unwrap_err().to_string();
    assert!(error.contains("\"mine\"") && error.contains("CfOptions::merge_operator"), "{error}");
}

#[test]
fn names_are_what_is_kept_and_what_counts() {
    for name in ["none", "add", "append", "max", "mine"] {
        let operator: MergeOperator = name.parse().unwrap();
        assert_eq!(operator.to_string(), name);
        assert_eq!(operator.is_given(), !matches!(name, "none" | "mine"));
    }
    for name in ["", "a b", "a=b", "\u{e9}", &"x".repeat(65)] {
        assert!(name.parse::<MergeOperator>().is_err(), "{name:?}");
        let built = MergeOperator::associative(name, |_, _, newer| Some(newer.to_vec()));
        assert_eq!(built.validate().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(MergeOperator::new("none", |_, _, _| None).validate().is_err());
    let (mine, named) = (MergeOperator::new("mine", |_, _, _| None), "mine".parse().unwrap());
    assert_eq!(mine, named);
    assert!(mine.over(&named).unwrap().is_given(), "its code comes along");
    assert!(named.over(&mine).unwrap().is_given(), "its code stays");
    assert!(MergeOperator::none().over(&mine).unwrap().is_given(), "nobody has to name it again");
    assert!(mine.over(&MergeOperator::none()).unwrap().is_given());
    assert_eq!(MergeOperator::add().over(&mine).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
