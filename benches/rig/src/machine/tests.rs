use super::*;

#[test]
fn files_of_proc_are_understood() {
    let text = "processor\t: 0\nmodel name\t: AMD EPYC\n\nmodel name\t: B\nMemTotal:  16384 kB\n";
    assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC"));
    let total = field(text, "MemTotal").unwrap();
    assert_eq!(kilobytes(&total), Some(16 << 20));
    assert_eq!(field(text, "Swap"), None);
}
