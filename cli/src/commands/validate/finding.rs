//! The findings: one line each.

use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Code;
use crate::output;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// It works, but perhaps not as intended.
    Warning,
    Failed,
}

/// The finding of a check. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Finding {
    status: Status,
    /// The subject of the check: a flag, or a section of the file.
    subject: String,
    message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// Whether the check needed a connection.
    connecting: bool,
}

/// All findings, in order.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    pub(super) connecting: bool,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Findings {
    pub(super) fn ok(&mut self, subject: &str, message: impl Into<String>) {
        self.add(Status::Ok, subject, message.into(), None);
    }

    pub(super) fn warn(&mut self, subject: &str, message: impl Into<String>, fix: &str) {
        self.add(Status::Warning, subject, message.into(), Some(fix));
    }

    pub(super) fn failed(&mut self, subject: &str, message: impl Into<String>, fix: &str) {
        self.add(Status::Failed, subject, message.into(), Some(fix));
    }

    fn add(&mut self, status: Status, subject: &str, message: String, fix: Option<&str>) {
        self.all.push(Finding {
            status,
            subject: subject.to_owned(),
            message,
            fix: fix.map(str::to_owned),
            connecting: self.connecting,
        });
    }

    /// Returns the exit code of the command.
    pub(super) fn code(&self) -> Code {
        let failed = self.all.iter().filter(|it| it.status == Status::Failed);
        match failed.map(|it| it.connecting).min() {
            Some(false) => Code::Configuration,
            Some(true) => Code::Unavailable,
            None => Code::Done,
        }
    }

    /// Returns the findings as JSON. The names are part of the program's interface.
    pub(super) fn document(&self) -> Value {
        let count = |status| self.all.iter().filter(|it| it.status == status).count();
        json!({
            "ok": count(Status::Ok),
            "warnings": count(Status::Warning),
            "failed": count(Status::Failed),
            "checks": self.all,
        })
    }

    pub(super) fn text(&self) -> String {
        let rows = self.all.iter().map(|it| {
            let fix = it.fix.iter().map(|fix| format!("; {fix}"));
            let fix: String = fix.collect();
            let said = format!("{}: {}{fix}", it.subject, it.message);
            (it.status.name(), said)
        });
        output::two_columns(&rows.collect::<Vec<_>>())
    }
}
