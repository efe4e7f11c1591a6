//! What was found: one line each.

use serde::Serialize;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Ok,
    /// It works, other than may be meant.
    Warning,
    Failed,
}

/// What a check found. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Finding {
    status: Status,
    /// What was looked at: a flag, a section of the file.
    subject: String,
    message: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// Whether it took a connection to see.
    connecting: bool,
}

/// All that was found, in order.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    pub(super) connecting: bool,
}

/// The findings as a document.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    ok: usize,
    warnings: usize,
    failed: usize,
    checks: &'a [Finding],
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

    pub(super) fn any(&self, status: Status, connecting: bool) -> bool {
        let mut all = self.all.iter();
        all.any(|it| it.status == status && it.connecting == connecting)
    }

    pub(super) fn document(&self) -> Document<'_> {
        let count = |status| self.all.iter().filter(|it| it.status == status).count();
        Document {
            ok: count(Status::Ok),
            warnings: count(Status::Warning),
            failed: count(Status::Failed),
            checks: &self.all,
        }
    }

    pub(super) fn text(&self) -> String {
        let lines = self.all.iter().map(|it| {
            let status = match it.status {
                Status::Ok => "ok     ",
                Status::Warning => "warning",
                Status::Failed => "failed ",
            };
            let fix = it
                .fix
                .as_ref()
                .map_or_else(String::new, |fix| format!("; {fix}"));
            format!("{status}  {}: {}{fix}\n", it.subject, it.message)
        });
        lines.collect()
    }
}
