//! The files to follow: a file, a folder, or names with wildcards.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::folder_of;

/// The files to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// A file, perhaps one that does not exist yet.
    File(PathBuf),
    /// All files of a folder but hidden ones.
    Folder(PathBuf),
    /// A path with `*`, `?` or `[abc]` in its parts, for names that are not hidden.
    Glob(PathBuf),
}

impl Pattern {
    /// Reads a path: wildcards make a glob, and an existing folder or a slash at the end a folder.
    pub fn of(path: &Path) -> Self {
        let text = path.as_os_str().to_string_lossy();
        if path.exists() && path.is_dir() || text.ends_with('/') {
            Self::Folder(path.to_owned())
        } else if !path.exists() && text.contains(['*', '?', '[']) {
            Self::Glob(path.to_owned())
        } else {
            Self::File(path.to_owned())
        }
    }

    /// Returns the path as it was given.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Folder(path) | Self::Glob(path) => path,
        }
    }

    /// Returns the folders with files to follow, in canonical form.
    ///
    /// # Errors
    ///
    /// The operating system refuses, other than for a missing folder.
    pub(crate) fn folders(&self) -> io::Result<Vec<PathBuf>> {
        match self {
            // The target of a link is rotated in its own folder.
            Self::File(path) => Ok(vec![folder_of(&resolved(path)?).to_owned()]),
            Self::Folder(path) => Ok(vec![fs::canonicalize(path)?]),
            Self::Glob(path) => {
                let mut folders = vec![PathBuf::new()];
                for part in folder_of(path).components() {
                    let Component::Normal(name) = part else {
                        folders.iter_mut().for_each(|folder| folder.push(part));
                        continue;
                    };
                    let name = name.to_string_lossy();
                    if !name.contains(['*', '?', '[']) {
                        folders.iter_mut().for_each(|folder| folder.push(part));
                        continue;
                    }
                    let mut found = Vec::new();
                    for folder in &folders {
                        for entry in fs::read_dir(if_empty(folder))? {
                            let entry = entry?;
                            let is_match = is_match(&name, &entry.file_name().to_string_lossy());
                            if is_match && entry.path().is_dir() {
                                found.push(entry.path());
                            }
                        }
                    }
                    folders = found;
                }
                folders.retain(|folder| if_empty(folder).is_dir());
                folders
                    .iter()
                    .map(|it| fs::canonicalize(if_empty(it)))
                    .collect()
            }
        }
    }

    /// Whether the pattern asks for a file with this name, in one of its folders.
    pub(crate) fn names(&self, name: &str) -> bool {
        match self {
            Self::File(path) => {
                let target = resolved(path);
                target.is_ok_and(|it| it.file_name().is_some_and(|it| it == name))
            }
            Self::Folder(_) => !name.starts_with('.'),
            Self::Glob(path) => {
                let pattern = path.file_name().map(|it| it.to_string_lossy());
                pattern.is_some_and(|it| is_match(&it, name))
            }
        }
    }
}

/// Follows links, and makes the folder canonical. The file may be missing.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) => {
            // A link whose target is being rotated.
            let target = match fs::read_link(path) {
                Ok(target) => folder_of(path).join(target),
                Err(_) => path.to_owned(),
            };
            let folder = fs::canonicalize(folder_of(&target))?;
            Ok(folder.join(target.file_name().ok_or(error)?))
        }
    }
}

fn if_empty(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

/// Whether a name fits a pattern with `*`, `?`, `[abc]`, `[a-z]` and `[!a]`.
fn is_match(pattern: &str, name: &str) -> bool {
    let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
    !is_hidden
        && fits(
            &pattern.chars().collect::<Vec<_>>(),
            &name.chars().collect::<Vec<_>>(),
        )
}

fn fits(pattern: &[char], name: &[char]) -> bool {
    // The place after the last star, and the name from where it was tried.
    let (mut star, mut rest, mut left) = (None, pattern, name);
    loop {
        match (rest, left) {
            (['*', after @ ..], _) => {
                star = Some((after, left));
                rest = after;
                continue;
            }
            ([], []) => return true,
            (_, [first, others @ ..]) => {
                if let Some(after) = one(rest, *first) {
                    (rest, left) = (after, others);
                    continue;
                }
            }
            _ => {}
        }
        match star {
            Some((after, [_, others @ ..])) => {
                star = Some((after, others));
                (rest, left) = (after, others);
            }
            _ => return false,
        }
    }
}

/// Takes the part of a pattern for one character; `None` if it does not fit.
fn one(pattern: &[char], character: char) -> Option<&[char]> {
    match pattern {
        ['?', rest @ ..] => Some(rest),
        ['[', rest @ ..] if rest.iter().skip(1).any(|it| *it == ']') => {
            let end = 1 + rest.iter().skip(1).position(|it| *it == ']')?;
            let (mut set, rest) = rest.split_at_checked(end)?;
            let is_negated = matches!(set.first(), Some('!' | '^'));
            set = set.get(usize::from(is_negated)..)?;
            let mut is_in = false;
            while let Some((first, others)) = set.split_first() {
                match others {
                    ['-', last, others @ ..] => {
                        is_in |= (*first..=*last).contains(&character);
                        set = others;
                    }
                    _ => {
                        is_in |= *first == character;
                        set = others;
                    }
                }
            }
            (is_in != is_negated).then_some(rest.get(1..)?)
        }
        [first, rest @ ..] if *first == character => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
