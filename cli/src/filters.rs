//! The filters that several commands have: by type, by time, by a condition.

use std::ops::Range;

use baler_analysis::Stage;
use baler_analysis::filters::{ByTime, ByType, Condition, TypePattern, Where};
use serde_json::json;

use crate::exit::{Code, Failure};
use crate::output;

/// The filters that records must pass.
pub(crate) struct Filters {
    types: Vec<TypePattern>,
    /// Nanoseconds since the Unix epoch. Records without a timestamp are outside of every span.
    pub(crate) span: Option<Range<i64>>,
    pub(crate) condition: Option<Condition>,
}

impl Filters {
    /// Creates filters for records of these types that were logged from `since` on and before
    /// `until`, and meet the condition.
    ///
    /// # Errors
    ///
    /// The span is empty.
    pub(crate) fn new(
        types: &[String],
        since: Option<i64>,
        until: Option<i64>,
        condition: Option<Condition>,
    ) -> Result<Self, Failure> {
        let span = since.unwrap_or(i64::MIN)..until.unwrap_or(i64::MAX);
        let span = (since.is_some() || until.is_some()).then_some(span);
        if let Some(Range { start, end }) = span.as_ref().filter(|span| span.is_empty()) {
            return Err(Failure::configuration(format!(
                "--since {start} is not before --until {end}: no record can be between"
            )));
        }
        let types = types.iter().map(|it| TypePattern::new(it.as_str()));
        Ok(Self {
            types: types.collect(),
            span,
            condition,
        })
    }

    /// Puts the filters before a stage.
    pub(crate) fn before(&self, mut stage: Box<dyn Stage>) -> Box<dyn Stage> {
        if let Some(condition) = self.condition.clone() {
            stage = Box::new(Where::new(condition, stage));
        }
        if let Some(span) = self.span.clone() {
            stage = Box::new(ByTime::new(span, stage));
        }
        if !self.types.is_empty() {
            stage = Box::new(ByType::new(self.types.iter().cloned(), stage));
        }
        stage
    }
}

/// Returns the exit code of a command that has no other failure.
pub(crate) fn code(condition: Option<&Condition>) -> Code {
    Code::data_if(condition.is_some_and(|it| it.undecided().records > 0))
}

/// Adds the figures of the records that a condition cannot judge to a document, if there is one. The
/// names are part of the program's interface.
pub(crate) fn insert(condition: Option<&Condition>, document: &mut serde_json::Value) {
    let Some(condition) = condition else { return };
    let undecided = condition.undecided();
    output::insert(document, "undecided", undecided.records);
    let kinds = undecided.kinds.iter().map(|((field, type_name), kind)| {
        json!({
            "field": field,
            "type": type_name,
            "example": kind.example,
            "reason": kind.reason,
            "records": kind.records,
        })
    });
    let kinds = json!(kinds.collect::<Vec<_>>());
    output::insert(document, "undecided_values", kinds);
}

/// Reports on standard error the records for which the expression could not be evaluated, if
/// any.
pub(crate) fn report_undecided(condition: Option<&Condition>) {
    let Some(condition) = condition else { return };
    for ((field, type_name), kind) in &condition.undecided().kinds {
        let (records, reason) = (output::counted(kind.records, "record"), &kind.reason);
        let mut message = format!("--where cannot judge {records}: {reason}");
        if !field.is_empty() {
            message.push_str(&format!("; {field} ({type_name}) is {}", kind.example));
        }
        output::say(message);
    }
}
