//! Pages in a real browser: no error, nothing loaded, nothing wider than the screen, tooltips by
//! keyboard; light and dark, desktop and phone. One of every kind of run, and the index over them.
//!
//! Needs Chromium (`chromium`, or the program in `LITHIFY_BROWSER`). Without it the test says so and
//! passes; with `LITHIFY_EXPECT_BROWSER=1` it fails. `LITHIFY_SCREENSHOTS=DIR` keeps pictures.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lithify_lab::records::{self, AnyRecord, file, kinds};
use serde_json::{Value, json};

/// Longest time that the browser may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Height of one picture of a page, pixels.
const PICTURE_HEIGHT: u64 = 1600;

/// Width of a page of paper without its margins, pixels.
const PAPER_WIDTH: u64 = 695;

/// The browser, if there is one.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LITHIFY_BROWSER") {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = names.iter().flat_map(|name| directories.iter().map(move |d| d.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// A browser that is spoken to over a pipe: messages of JSON, each ended by a zero byte.
struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// Messages that were no answers.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    fn start(program: &Path) -> Chromium {
        let profile = tempfile::tempdir().expect("a directory");
        // The browser speaks over descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-extensions", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message) {
                    let _ = sender.send(value);
                }
                message.clear();
            }
        });
        let mut browser = Chromium {
            child,
            input,
            messages,
            last: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method and waits for its answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Waits for an event of the page.
    fn wait_for(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == method) {
            let message = self.messages.recv_timeout(PATIENCE).expect("the browser goes on");
            self.events.push(message);
        }
    }

    /// Opens a page on a screen.
    fn open(&mut self, page: &Path, width: u64, dark: bool) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1,
            "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
        self.events.clear();
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", json!({"url": url}));
        self.wait_for("Page.loadEventFired");
    }

    /// The value of an expression.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// What went wrong since the page was opened, and what was asked for outside of it.
    fn complaints(&mut self) -> Vec<String> {
        // Whatever was said before is heard by the answer.
        self.value("0");
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                !url.starts_with("file:") && !url.starts_with("data:")
            }
            _ => false,
        };
        self.events.iter().filter(is_complaint).map(Value::to_string).collect()
    }

    /// Keeps the page as pictures of its parts, from the top.
    fn pictures(&mut self, width: u64, stem: &Path) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1,
            "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let height = self.value("document.documentElement.scrollHeight").as_u64().unwrap_or(0);
        for (part, top) in (0..height).step_by(PICTURE_HEIGHT as usize).enumerate() {
            let clip = json!({"x": 0, "y": top, "width": width, "scale": 1,
                "height": PICTURE_HEIGHT.min(height - top)});
            let picture = json!({"captureBeyondViewport": true, "format": "png", "clip": clip});
            let file = PathBuf::from(format!("{}-{part:02}.png", stem.display()));
            self.keep("Page.captureScreenshot", picture, &file);
        }
    }

    /// Keeps what `method` gives as base64.
    fn keep(&mut self, method: &str, parameters: Value, file: &Path) {
        let data = self.call(method, parameters)["data"].as_str().unwrap_or_default().to_owned();
        std::fs::write(file, decoded(&data)).expect("writes");
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|known| *known == byte)) {
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Pages of all committed results and of the small records of other kinds, and the index over them,
/// in a directory of their own.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut pages, mut records) = (Vec::new(), Vec::new());
    for results in [here.join("../../results"), here.join("tests/records")] {
        for (name, path) in file::files_in(&results).expect("records") {
            let Ok(record) = AnyRecord::read(&path) else { continue };
            let page = directory.join(format!("{name}.html"));
            std::fs::write(&page, kinds::page(&record)).expect("writes");
            pages.push(page);
            records.push((format!("{name}.html"), record));
        }
    }
    assert!(records.len() >= 12, "only {} records have pages", records.len());
    pages.sort();
    let index = directory.join("index.html");
    std::fs::write(&index, records::index::render("results", &records, &[])).expect("writes");
    pages.insert(0, index);
    pages
}

/// The width of a word, 0 without fonts.
const WORD_WIDTH: &str = "(() => {
    const word = document.body.appendChild(document.createElement('span'));
    word.textContent = 'word';
    const width = word.getBoundingClientRect().width;
    word.remove();
    return width;
})()";

/// Elements that stick out of the screen, those in boxes that scroll left out.
const TOO_WIDE: &str = "[...document.querySelectorAll('body *')].filter(e => {
    if (e.closest('.scroll') && !e.matches('.scroll') || e.closest('.skip')) return false;
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).slice(0, 5).map(e => e.outerHTML.slice(0, 160)).join('\\n')";

#[test]
fn pages_in_a_browser() {
    let Some(program) = browser() else {
        let expected = std::env::var_os("LITHIFY_EXPECT_BROWSER").is_some_and(|set| set == "1");
        assert!(!expected, "LITHIFY_EXPECT_BROWSER is set, and there is no browser");
        println!("skipped: no browser; install the package chromium, or set LITHIFY_BROWSER");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let pictures = std::env::var_os("LITHIFY_SCREENSHOTS").map(PathBuf::from);
    let mut browser = Chromium::start(&program);
    for page in pages(directory.path()) {
        let name = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (width, dark) in [(1280, false), (390, true), (390, false), (1280, true)] {
            browser.open(&page, width, dark);
            let place =
                format!("{name} at {width} pixels, {}", if dark { "dark" } else { "light" });
            assert_eq!(browser.complaints(), [""; 0], "{place}");
            let word = browser.value(WORD_WIDTH);
            assert!(word.as_f64() > Some(0.0), "{place}: there are no fonts: install one");
            let wide = browser.value("document.documentElement.scrollWidth - innerWidth");
            let sticking_out = browser.value(TOO_WIDE);
            assert_eq!(wide, 0, "{place}: {sticking_out}");
            assert_eq!(sticking_out, "", "{place}");
            if let Some(pictures) = &pictures {
                let scheme = if dark { "dark" } else { "light" };
                browser.pictures(width, &pictures.join(format!("{name}-{width}-{scheme}")));
            }
        }
        if name == "index" {
            links(&mut browser, &page);
            continue;
        }
        colours_differ(&mut browser, &page);
        keyboard(&mut browser, &page);
        names(&mut browser, &page);
        without_scripts(&mut browser, &page);
        if let Some(pictures) = &pictures {
            let file = pictures.join(format!("{name}.pdf"));
            browser.keep("Page.printToPDF", json!({"printBackground": true}), &file);
            browser.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
            browser.pictures(PAPER_WIDTH, &pictures.join(format!("{name}-print")));
        }
    }
}

/// Every run of the index has a link, and a link leads to a page.
fn links(browser: &mut Chromium, index: &Path) {
    browser.open(index, 1280, false);
    let links = browser.value("[...document.querySelectorAll('.runs a')].map(a => a.href)");
    let links = links.as_array().expect("links").clone();
    let runs = browser.value("document.querySelectorAll('.runs li').length");
    assert_eq!(runs, links.len(), "{links:?}");
    for link in links {
        let path = link.as_str().and_then(|link| link.strip_prefix("file://")).expect("a file");
        assert!(Path::new(path).is_file(), "{path}");
    }
}

/// Dark pages have other colours, and drawings with them.
fn colours_differ(browser: &mut Chromium, page: &Path) {
    let mut seen = Vec::new();
    for dark in [false, true] {
        browser.open(page, 1280, dark);
        let colours = "getComputedStyle(document.body).backgroundColor + \
            getComputedStyle(document.querySelector('.plot.wide text')).fill";
        seen.push(browser.value(colours));
    }
    assert_ne!(seen[0], seen[1], "{}", page.display());
}

/// Whatever can have the focus, and every figure and table, has a name for readers that listen.
fn names(browser: &mut Chromium, page: &Path) {
    browser.open(page, 1280, false);
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().expect("a tree");
    let mut named = 0;
    for node in nodes.iter().filter(|node| node["ignored"] == false) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let has = |name: &str| {
            let properties = node["properties"].as_array();
            let mut properties = properties.into_iter().flatten();
            properties.any(|p| p["name"] == name && p["value"]["value"] == true)
        };
        if has("focusable") || ["figure", "table", "navigation"].contains(&role) {
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.is_empty(), "{}: a {role} without a name: {node}", page.display());
            named += 1;
        }
    }
    assert!(named > 20, "{}: only {named} nodes", page.display());
}

/// Without scripts the drawings are there, and marks have the browser's own tooltips.
fn without_scripts(browser: &mut Chromium, page: &Path) {
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(page, 1280, false);
    let titles =
        browser.value("document.querySelectorAll('.plot:not(.narrow) .mark > title').length");
    let marks = browser.value("document.querySelectorAll('.plot:not(.narrow) .mark').length");
    let drawn =
        browser.value("document.querySelector('.plot.wide').getBoundingClientRect().height");
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": false}));
    assert_eq!(titles, marks, "{}", page.display());
    assert!(drawn.as_f64().is_some_and(|height| height > 100.0), "{}", page.display());
}

/// A mark that has the focus shows what it says; a plot over time reads its seconds by arrows.
fn keyboard(browser: &mut Chromium, page: &Path) {
    browser.open(page, 1280, false);
    let mark = "(() => { const m = [...document.querySelectorAll('.plot.wide .mark')][0];
        if (!m) return 'no marks'; m.focus(); const tip = document.querySelector('.tip');
        return tip.hidden ? 'hidden' : tip.textContent; })()";
    let shown = browser.value(mark);
    assert!(shown.as_str().is_some_and(|text| !text.is_empty() && text != "hidden"), "{shown}");
    let lines = "(() => { const p = document.querySelector('svg.wide[data-lines]');
        if (!p) return 'no lines'; p.focus();
        p.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
        return document.querySelector('[aria-live]').textContent; })()";
    let read = browser.value(lines);
    assert!(read.as_str().is_some_and(|text| !text.is_empty()), "{}: {read}", page.display());
    assert_eq!(browser.complaints(), [""; 0], "{}", page.display());
}
