//! The names that the generations of a log have: `app.log`, `app.log.1`, `app.log-20261126.gz`,
//! `app-20261126.log`.

/// The endings of compressed files.
const COMPRESSED: [&str; 2] = [".gz", ".zst"];

/// How old a generation is among the others of its log, as far as its name says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Age {
    /// The numbers of a date, and perhaps a counter: a greater one is newer.
    Date(Vec<u64>),
    /// The file that is written.
    Live,
    /// A number after the name: usually a greater one is older.
    Number(u64),
}

/// A log that a file can belong to, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName {
    /// The name of the log.
    pub log: String,
    /// The generation of the log that the file is.
    pub age: Age,
    /// Whether files with such names are always generations. A number before the extension
    /// (`worker.1.log`) can also tell logs apart.
    pub is_sure: bool,
}

/// Returns the logs that a file with this name can belong to, the file itself first.
pub fn log_names_of(name: &str) -> Vec<LogName> {
    let of = |log: &str, age, is_sure| LogName {
        log: log.to_owned(),
        age,
        is_sure,
    };
    let mut names = vec![of(name, Age::Live, true)];
    let plain = without_compression(name);
    if plain != name {
        names.push(of(plain, Age::Number(0), true));
    }
    names.extend(stamps(plain).map(|(log, age)| of(log, age, true)));
    if let Some((stem, extension)) = plain.rsplit_once('.') {
        names.extend(stamps(stem).map(|(log, age)| {
            let is_sure = matches!(age, Age::Date(_));
            of(&format!("{log}.{extension}"), age, is_sure)
        }));
    }
    names
}

/// Returns the name of a file before it was compressed.
pub(crate) fn without_compression(name: &str) -> &str {
    let mut endings = COMPRESSED.iter();
    let plain = endings.find_map(|ending| name.strip_suffix(ending));
    plain.filter(|it| !it.is_empty()).unwrap_or(name)
}

/// Returns the ways to split a name into a log and a date or number after it.
fn stamps(name: &str) -> impl Iterator<Item = (&str, Age)> {
    name.match_indices(['.', '-', '_'])
        .filter_map(|(at, separator)| {
            let (log, stamp) = name.split_at_checked(at)?;
            let age = age(stamp.get(1..)?)?;
            let is_stamp = !log.is_empty() && (separator == "." || matches!(age, Age::Date(_)));
            is_stamp.then_some((log, age))
        })
}

/// Reads `1`, `20261126`, `20261126-120000`, `2026-11-26-10`, `2026-11-26.1`, `11-26-2026`,
/// `1795694400` (seconds since 1970).
fn age(stamp: &str) -> Option<Age> {
    let groups: Vec<&str> = stamp.split(['.', '-', '_', ':', 'T']).collect();
    let is_number = |group: &&str| {
        (1..=14).contains(&group.len()) && group.bytes().all(|it| it.is_ascii_digit())
    };
    if !groups.iter().all(is_number) {
        return None;
    }
    if let Some(date) = date(&groups) {
        return Some(Age::Date(date));
    }
    match groups.as_slice() {
        [seconds] if seconds.len() >= 9 => Some(Age::Date(vec![seconds.parse().ok()?])),
        [number] => Some(Age::Number(number.parse().ok()?)),
        _ => None,
    }
}

fn date(groups: &[&str]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let (first, rest) = groups.split_first()?;
    match first.len() {
        // Year, month, and perhaps day, hour, minute, second.
        6 | 8 | 10 | 12 | 14 => {
            let (year, mut left) = first.split_at_checked(4)?;
            numbers.push(year.parse().ok()?);
            while let Some((pair, after)) = left
                .split_at_checked(2)
                .filter(|(pair, _)| !pair.is_empty())
            {
                numbers.push(pair.parse().ok()?);
                left = after;
            }
        }
        4 if !rest.is_empty() => numbers.push(first.parse().ok()?),
        // Month, day, year.
        2 if rest.get(1).is_some_and(|year| year.len() == 4) => {
            numbers.extend([rest.get(1)?.parse::<u64>().ok()?, first.parse().ok()?]);
        }
        _ => return None,
    }
    let is_american = first.len() == 2;
    for (at, group) in rest.iter().enumerate() {
        if !(is_american && at == 1) {
            numbers.push(group.parse().ok()?);
        }
    }
    let is_date = matches!(
        *numbers.as_slice(),
        [1970..=2199, 1..=12] | [1970..=2199, 1..=12, 1..=31, ..]
    );
    is_date.then_some(numbers)
}

#[cfg(test)]
mod tests;
