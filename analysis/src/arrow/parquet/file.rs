//! A Parquet file that has a temporary name until it is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::super::convert::TypeBatch;

/// A file that takes records.
pub(super) struct OpenFile {
    writer: ArrowWriter<File>,
    names: Names,
    content: Content,
}

/// A complete file on disk that still has its temporary name.
pub(super) struct WholeFile {
    names: Names,
    pub(super) content: Content,
}

/// The type of the records in a file, and their number.
pub(super) struct Content {
    pub(super) type_name: Box<str>,
    pub(super) records: u64,
}

/// The temporary name of the file, and the final one.
struct Names {
    temporary: PathBuf,
    path: PathBuf,
}

/// An incomplete file is useless: its chunks come again.
impl Drop for Names {
    fn drop(&mut self) {
        // After publishing, the temporary file is gone. If the file cannot be removed, no reader
        // looks at it.
        fs::remove_file(&self.temporary).ok();
    }
}

impl OpenFile {
    /// Begins a file in this folder for records like these.
    pub(super) fn create(folder: &Path, stem: &str, records: &TypeBatch) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let names = Names {
            temporary: folder.join(format!(".{stem}.parquet.tmp")),
            path: folder.join(format!("{stem}.parquet")),
        };
        let file = File::create_new(&names.temporary)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("baler ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(file, records.rows.schema(), Some(properties));
        Ok(Self {
            writer: writer.map_err(as_io)?,
            names,
            content: Content {
                type_name: records.schema.name().into(),
                records: 0,
            },
        })
    }

    /// Returns its final name.
    pub(super) fn path(&self) -> &Path {
        &self.names.path
    }

    /// Appends records.
    pub(super) fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.writer.write(rows).map_err(as_io)?;
        self.content.records += rows.num_rows() as u64;
        Ok(())
    }

    /// Returns its approximate size so far.
    pub(super) fn bytes(&self) -> usize {
        self.writer.bytes_written() + self.writer.in_progress_size()
    }

    /// Writes the missing parts, and waits until the disk has all of it.
    pub(super) fn finish(self) -> io::Result<WholeFile> {
        let Self {
            writer,
            names,
            content,
        } = self;
        writer.into_inner().map_err(as_io)?.sync_all()?;
        Ok(WholeFile { names, content })
    }
}

impl WholeFile {
    /// Returns its final name.
    pub(super) fn path(&self) -> &Path {
        &self.names.path
    }

    /// Gives it its final name. The folder must be synchronised after that.
    pub(super) fn publish(&self) -> io::Result<()> {
        fs::rename(&self.names.temporary, &self.names.path)
    }
}

/// Waits until the disk has the entries of a folder.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    // On other systems, folders cannot be opened.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Returns the error of the disk, if it is one.
fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}
