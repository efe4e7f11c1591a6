//! Switching probes on and off from afar.
//!
//! Kieker's package `kieker.common.record.remotecontrol`.

use crate::record::Record;

/// Probes that match a pattern are to be switched on.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.ActivationEvent",
    rename_all = "camelCase"
)]
pub struct ActivationEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
}

/// Probes that match a pattern are to be switched on for some values of a parameter.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.ActivationParameterEvent",
    rename_all = "camelCase"
)]
pub struct ActivationParameterEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
    /// The name of the parameter.
    #[record(default)]
    pub name: String,
    /// The values, as text.
    pub values: Vec<String>,
}

/// A value is to be added to a parameter of the probes that match a pattern.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.AddParameterValueEvent",
    rename_all = "camelCase"
)]
pub struct AddParameterValueEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
    /// The name of the parameter.
    #[record(default)]
    pub name: String,
    /// The value.
    #[record(default)]
    pub value: String,
}

/// Probes that match a pattern are to be switched off.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.DeactivationEvent",
    rename_all = "camelCase"
)]
pub struct DeactivationEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
}

/// A value is to be removed from a parameter of the probes that match a pattern.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.RemoveParameterValueEvent",
    rename_all = "camelCase"
)]
pub struct RemoveParameterValueEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
    /// The name of the parameter.
    #[record(default)]
    pub name: String,
    /// The value.
    #[record(default)]
    pub value: String,
}

/// The values of a parameter of the probes that match a pattern are to be replaced.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.remotecontrol.UpdateParameterEvent",
    rename_all = "camelCase"
)]
pub struct UpdateParameterEvent {
    /// The pattern.
    #[record(default)]
    pub pattern: String,
    /// The name of the parameter.
    #[record(default)]
    pub name: String,
    /// The values, as text.
    pub values: Vec<String>,
}
