//! Load averages, from `/proc/loadavg`.

use std::io;

use baler_common::record::kieker::LoadAverageRecord;

use super::proc::malformed;
use super::sampler::{Context, Sample, Sensor};

const FILE: &str = "proc/loadavg";

/// The load averages of the machine.
#[derive(Debug)]
pub(super) struct Load;

impl Sensor for Load {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let [one, five, fifteen] = parse(&context.root.read(FILE)?)?;
        out.push(Sample::Load(LoadAverageRecord {
            timestamp: context.unix_ns,
            hostname: context.hostname.to_owned(),
            one_min_load_average: one,
            five_min_load_average: five,
            fifteen_min_load_average: fifteen,
        }));
        Ok(())
    }
}

fn parse(text: &str) -> io::Result<[f64; 3]> {
    let mut words = text.split_ascii_whitespace();
    let mut averages = [0.0; 3];
    for average in &mut averages {
        let number = words.next().and_then(|word| word.parse::<f64>().ok());
        *average = number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| malformed(FILE, text))?;
    }
    Ok(averages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_averages_come_first() {
        assert_eq!(
            parse("0.20 1.18 12.00 1/80 11206\n").unwrap(),
            [0.2, 1.18, 12.0]
        );
        for text in ["", "1 2", "a b c", "1 2 NaN", "1 2 inf", "-1 2 3"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
