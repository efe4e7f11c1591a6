//! Documentation as comments of source code.

use std::sync::Arc;

use minijinja::context;
use minijinja::value::Value as Data;

use crate::model::{About, Property, Record};

pub(super) fn field_about(record: &Record, property: &Property) -> Data {
    let mut lines = vec![format!("`{} {}`", property.property_type, property.name)];
    if property.is_transient {
        lines.push("Not sent.".to_owned());
    }
    let aliases = record.aliases.iter();
    for alias in aliases.filter(|it| it.target == property.name) {
        lines.push(format!("Other name: {}.", alias.name));
    }
    about(&lines, &documented(&property.doc))
}

pub(super) fn documented(doc: &Option<Arc<str>>) -> About {
    About {
        doc: doc.clone(),
        ..About::default()
    }
}

/// Returns the lines of a comment, the first ones before those of the documentation, and the
/// annotations.
pub(super) fn about(first: &[String], about: &About) -> Data {
    let doc = about.doc.as_deref().into_iter().flat_map(str::lines);
    let lines = first.iter().map(String::as_str).chain(doc);
    let text = |it: &Option<Arc<str>>| it.as_deref().map(safe_comment);
    context! { doc => lines.map(safe_comment).collect::<Data>(),
    author => text(&about.author), since => text(&about.since) }
}

/// Takes away what could end a comment, or has a meaning in one.
fn safe_comment(text: &str) -> String {
    let plain = |it: &char| {
        !it.is_control() && !matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text: String = text.trim().chars().filter(plain).collect();
    // The backslash first: it becomes a part of the others.
    text.replace('\\', "/")
        .replace("*/", "* /")
        .replace("/*", "/ *")
}
