//! `baler send`: the records of lines, a log or a medium to another medium.
//!
//! the records that [`Forwarding`] takes from a medium -> controller -> writer

mod forward;

use std::num::NonZeroUsize;

use baler_analysis::Source;
use baler_analysis::filters::Fields;
use serde_json::json;

pub(super) use forward::{Forwarding, add_filtered, figures};

use crate::args::SendArgs;
use crate::decoding;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::filters;
use crate::observe::Observation;
use crate::output;
use crate::quarantine::PoisonPolicy;
use crate::shipping::Shipper;
use crate::shutdown::{Shutdown, is_partial};

/// Sends until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &SendArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (condition, fields) = (args.condition.expression()?, args.fields.chosen()?);
    let with_schemas = |uri| endpoint::with_schemas(uri, &args.decoding.schemas);
    let writer = endpoint::spooled_writer(&with_schemas(&args.to), &args.spool)?;
    let poison = PoisonPolicy::new(&args.quarantine, &args.attempts, shutdown.timeout())?;
    let decoder = decoding::decoder(
        &args.decoding,
        decoding::memory_parts(fields.as_ref(), NonZeroUsize::MIN),
    )?;
    let open = endpoint::open_reader(&with_schemas(&args.from), args.follow)?;
    // Records are passed on as they are: this program adds no metadata record of its own.
    let observation = Observation::start(&args.observe, "send", shutdown, quiet)?;
    let shipping = args.shipping.of_source(&args.from);
    let shipper = Shipper::start(&shipping, writer, false, &observation)?;
    if let Some(condition) = condition.clone() {
        observation.observed.add(Box::new(condition));
    }
    output::listening(open.listens_on, None, quiet)?;
    let forwarding = Forwarding {
        source: poison.apply(Source::new(open.reader).with_decoder(decoder)),
        endpoint: &open.endpoint,
        condition: condition.clone(),
        fields: fields.as_ref(),
        shipper: &shipper,
        idle_timeout: args.idle_timeout,
        give_up: args.idle_timeout.map(|_| args.shipping.give_up),
    };
    let (report, sent) = forwarding.run(&observation);
    let missing = report.missing(open.readership);
    let stopped_early = is_partial(report.reached_end, shutdown);
    let mut figures = figures(&open.endpoint, &report);
    output::insert(&mut figures, "missing", missing);
    output::insert(&mut figures, "stopped_early", stopped_early);
    add_filtered(&mut figures, condition.as_ref(), quiet);
    // A medium that was given up explains why the source stopped, not the other way round.
    let document = json!({ "source": figures });
    let (_, code) = shipper.conclude(observation, args.format, document)?;
    sent?;
    fields.as_ref().map_or(Ok(()), Fields::check)?;
    Ok(match code {
        Code::Done if report.quarantined > 0 || missing > 0 || report.reader.removals > 0 => {
            Code::Data
        }
        Code::Done if stopped_early => Code::Incomplete,
        Code::Done => filters::code(condition.as_ref()),
        code => code,
    })
}
