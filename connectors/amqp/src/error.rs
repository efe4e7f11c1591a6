//! The errors of the client library and the broker, and their retry classes.

use std::io;

use baler_common::transport::{Failure, RetryClass};
use lapin::ErrorKind;
use lapin::protocol::AMQPError;

/// The failure to connect or declare. Its class says whether another attempt can help.
pub(crate) fn of_setup(operation: &'static str, error: &lapin::Error) -> Failure {
    Failure {
        class: class(error),
        ..of_use(operation, error)
    }
}

/// The failure to connect. A peer that only closes the connection may not be a broker.
pub(crate) fn of_connecting(error: &lapin::Error) -> Failure {
    let mut failure = of_setup("connect to", error);
    if let ErrorKind::IOError(error) = error.kind()
        && matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
        )
    {
        let message = "the peer closed the connection before it spoke AMQP 0.9.1; is this the \
                       port of RabbitMQ?";
        failure.message = message.into();
    }
    failure
}

/// Whether the broker has no queue of the name. One whose node is down is not missing.
pub(crate) fn is_missing(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(error) = error.kind() else {
        return false;
    };
    error.get_id() == 404 && class_of_refusal(error) == RetryClass::Final
}

/// The failure of a declaration. If the broker has a different queue or exchange of that name, the
/// message says which setting suits it.
pub(crate) fn of_declaration(error: &lapin::Error) -> Failure {
    let mut failure = of_setup("declare", error);
    if let Some(advice) = advice(&failure.message) {
        failure.message = format!("{}; {advice}", failure.message).into();
    }
    failure
}

/// The advice for a queue or an exchange that the broker has with other arguments. It comes from the
/// words of the refusal (`rabbit_misc:assert_args_equivalence1`).
fn advice(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("inequivalent arg '")?;
    let (argument, rest) = rest.split_once('\'')?;
    let (_, current) = rest.split_once("but current is ")?;
    let has = |word: &&str| current.contains(*word);
    let kind = match argument {
        // A queue that was declared without a type is a classic one.
        "x-queue-type" => {
            let found = ["quorum", "stream"].into_iter().find(has);
            format!("queue_type={}", found.unwrap_or("classic"))
        }
        "type" => {
            let kinds = ["direct", "fanout", "headers", "topic"];
            format!("exchange_type={}", kinds.into_iter().find(has)?)
        }
        _ => {
            let advice = "give the URI the queue's own settings, or take it as it is with \
                          declare=false";
            return Some(advice.to_owned());
        }
    };
    Some(format!(
        "add {kind} to the URI, or take it as it is with declare=false"
    ))
}

/// The failure of a connection that worked. It can always be tried again.
pub(crate) fn of_use(operation: &'static str, error: &lapin::Error) -> Failure {
    let message = match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        ErrorKind::ParsingError(_) => "the peer does not speak AMQP 0.9.1".to_owned(),
        _ => error.to_string(),
    };
    Failure::retry(operation, message)
}

/// Whether setting up a connection again can help.
fn class(error: &lapin::Error) -> RetryClass {
    match error.kind() {
        ErrorKind::InvalidProtocolVersion(_)
        | ErrorKind::ParsingError(_)
        | ErrorKind::AuthProviderError(_) => RetryClass::Final,
        ErrorKind::ProtocolError(error) => class_of_refusal(error),
        // A certificate is not trusted, or the peer does not speak TLS.
        ErrorKind::IOError(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            ) =>
        {
            RetryClass::Final
        }
        _ => RetryClass::Retry,
    }
}

fn class_of_refusal(error: &AMQPError) -> RetryClass {
    // AMQP 0.9.1, section 1.2: access-refused, not-found, resource-locked, precondition-failed,
    // not-allowed, not-implemented.
    let refused = matches!(error.get_id(), 403..=406 | 530 | 540);
    // A broker sends the same codes while a node is down or starting, at a limit of connections, or
    // while the replica of a stream that was just declared starts.
    let message = error.get_message().as_str();
    let passes = [
        "is down",
        "stopped by",
        "connection limit",
        "locked queue",
        "replica on the local node",
    ]
    .iter()
    .any(|word| message.contains(word));
    if refused && !passes {
        RetryClass::Final
    } else {
        RetryClass::Retry
    }
}

/// The broker's limit of a message in bytes. It is only in the message with which the broker closes
/// the channel.
pub(crate) fn broker_limit(message: &str) -> Option<usize> {
    let (_, limit) = message.split_once("larger than configured max size ")?;
    let digits = limit.find(|c: char| !c.is_ascii_digit());
    limit.get(..digits.unwrap_or(limit.len()))?.parse().ok()
}

#[cfg(test)]
mod tests;
