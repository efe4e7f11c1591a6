use baler_common::container::Limits;

use super::*;

#[test]
fn a_record_with_another_field_or_of_another_seed_is_altered() {
    let stream = Stream {
        producer: 1,
        life: 2,
        thread: 3,
    };
    let sound = Numbered::make(7, stream, 5);
    assert_eq!(sound.identify(7), Some((stream, 5)));
    assert_eq!(sound.identify(8), None);
    let mut changes: Vec<Numbered> = vec![sound; 7];
    changes[0].producer += 1;
    changes[1].life += 1;
    changes[2].thread = 1 << 20;
    changes[3].number += 1;
    changes[4].value ^= 1;
    changes[5].text = "other".into();
    changes[6].hash ^= 1;
    for changed in changes {
        assert_eq!(changed.identify(7), None, "{changed:?}");
    }
}

#[test]
fn foreign_bytes_are_no_chunk() {
    let mut decoder = baler::decoder(Limits::default());
    for number in 0..50 {
        assert!(decoder.decode(&foreign_bytes(3, number)).is_err());
    }
}
