use super::*;

const FIRST: &str = "cpu  300 0 100 1600 0 0 0 0 0 0\n\
                         cpu0 100 0 50 850 0 0 0 0 0 0\n\
                         cpu1 200 0 50 750 0 0 0 0 0 0\n\
                         intr 12 0 0\nctxt 99\nbtime 1700000000\n";
const SECOND: &str = "cpu  320 10 120 1800 40 4 6 0 0 0\n\
                          cpu0 110 10 70 950 50 4 4 2 0 0\n\
                          cpu1 200 0 50 850 0 0 0 0 0 0\n";

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} {b}");
}

#[test]
fn the_first_sample_primes_and_the_second_is_the_share_in_between() {
    let mut cpu = Cpu::new(Detail::Full);
    assert_eq!(cpu.step(FIRST).unwrap(), []);
    let all = cpu.step(SECOND).unwrap();
    let [(0, first), (1, second)] = all.as_slice() else {
        panic!("{all:?}");
    };
    // 10 + 10 + 20 + 100 + 50 + 4 + 4 + 2 ticks.
    close(first.user, 0.05);
    close(first.nice, 0.05);
    close(first.system, 0.1);
    close(first.idle, 0.5);
    close(first.wait, 0.25);
    close(first.irq, 0.04);
    close(first.total, 0.25);
    close(first.total + first.idle + first.wait, 1.0);
    close(second.idle, 1.0);
    close(second.total, 0.0);
}

#[test]
fn without_a_tick_the_next_sample_covers_both_periods() {
    let mut cpu = Cpu::new(Detail::Full);
    cpu.step("cpu0 1 0 0 0 0 0 0 0").unwrap();
    assert_eq!(cpu.step("cpu0 1 0 0 0 0 0 0 0").unwrap(), []);
    let all = cpu.step("cpu0 2 0 0 1 0 0 0 0").unwrap();
    close(all.first().unwrap().1.user, 0.5);
}

#[test]
fn what_goes_back_counts_as_nothing_and_what_comes_back_primes() {
    let mut cpu = Cpu::new(Detail::Full);
    cpu.step("cpu0 10 0 0 10 500 0 0 0\ncpu7 1 1 1 1 1 1 1 1")
        .unwrap();
    let all = cpu.step("cpu0 20 0 0 20 400 0 0 0").unwrap();
    close(all.first().unwrap().1.user, 0.5);
    close(all.first().unwrap().1.wait, 0.0);
    // Processor 7 was off meanwhile.
    let all = cpu
        .step("cpu0 30 0 0 20 400 0 0 0\ncpu7 9 1 1 1 1 1 1 1")
        .unwrap();
    assert_eq!(all.len(), 1);
    // Everything less, as after a move to another machine.
    assert_eq!(cpu.step("cpu0 0 0 0 0 0 0 0 0").unwrap(), []);
}

#[test]
fn strange_texts_are_errors_and_never_numbers() {
    let mut cpu = Cpu::new(Detail::Combined);
    for text in [
        "",
        "cpu 1 2 3",
        "cpu0 1 2 3",
        "cpux 1 2 3 4 5 6 7 8",
        "cpu0 1 2 3 4 5 6 -7 8",
        "cpu0 99999999999999999999 2 3 4 5 6 7 8",
        "cpu99999999999 1 2 3 4 5 6 7 8",
    ] {
        assert!(cpu.step(text).is_err(), "{text}");
    }
    // An old kernel, and the largest numbers there are.
    cpu.step("cpu0 0 0 0 0 0 0 0").unwrap();
    let most = u64::MAX;
    let all = cpu
        .step(&format!("cpu0 {most} {most} 0 0 0 0 0 0"))
        .unwrap();
    close(all.first().unwrap().1.total, 1.0);
}
