use super::*;
use jiff::Timestamp;

fn windows(zone: &str, texts: &[&str]) -> Windows {
    Windows::new(zone, &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn ms(text: &str) -> u64 {
    text.parse::<Timestamp>().unwrap().as_millisecond() as u64
}

#[test]
fn what_is_no_window_is_named() {
    for bad in
        ["", "mon", "mon-fri 9-17", "fry 09:00-17:00", "daily 09:00-09:00", "daily 25:00-26:00", "2026-13-01"]
    {
        let is_day = bad == "mon";
        let read = Windows::new("UTC", &[bad.to_owned()]);
        assert_eq!(read.is_ok(), is_day, "{bad}");
        read.err().into_iter().for_each(|fault| assert_eq!(fault.field, "windows"));
    }
    assert_eq!(Windows::new("Mars/Base", &[]).unwrap_err().field, "window_zone");
}

#[test]
fn days_and_hours_by_the_clock_of_the_zone() {
    let office = windows("Europe/Berlin", &["mon-fri 09:00-17:30"]);
    // 2026-12-04 is a Friday; Berlin is UTC+1 then.
    assert_eq!(office.at(ms("2026-12-04T07:59:59Z")), Window::Closed(ms("2026-12-04T08:00:00Z")));
    assert_eq!(office.at(ms("2026-12-04T08:00:00Z")), Window::Open(ms("2026-12-04T16:30:00Z")));
    assert_eq!(office.at(ms("2026-12-04T16:30:00Z")), Window::Closed(ms("2026-12-07T08:00:00Z")));
}

#[test]
fn over_midnight_and_side_by_side() {
    let night = windows("UTC", &["daily 22:00-06:00", "sat,sun 06:00-12:00"]);
    assert_eq!(night.at(ms("2026-12-04T23:00:00Z")), Window::Open(ms("2026-12-05T12:00:00Z")));
    assert_eq!(night.at(ms("2026-12-05T13:00:00Z")), Window::Closed(ms("2026-12-05T22:00:00Z")));
}

#[test]
fn one_off_dates_open_and_close_and_what_is_closed_wins() {
    let shop = windows(
        "UTC",
        &["mon-fri 08:00-20:00", "2026-12-26 10:00-12:00", "not 2026-12-25", "not 2026-12-24 14:00-24:00"],
    );
    assert_eq!(shop.at(ms("2026-12-24T10:00:00Z")), Window::Open(ms("2026-12-24T14:00:00Z")));
    assert_eq!(shop.at(ms("2026-12-24T14:00:00Z")), Window::Closed(ms("2026-12-26T10:00:00Z")));
    let but = windows("UTC", &["not 2026-12-25"]);
    assert_eq!(but.at(ms("2026-12-24T00:00:00Z")), Window::Open(ms("2026-12-25T00:00:00Z")));
    assert_eq!(but.at(ms("2026-12-25T00:00:00Z")), Window::Closed(ms("2026-12-26T00:00:00Z")));
    let over = windows("UTC", &["2020-01-01"]);
    assert_eq!(over.at(0), Window::Closed(ms("1971-01-06T00:00:00Z")), "looked at again after the horizon");
}

/// failures 95: a skipped time is the moment the clocks jump to; one that comes twice is one long window.
#[test]
fn when_the_clocks_change_the_wall_clock_rules() {
    let early = windows("Europe/Berlin", &["daily 02:00-03:00"]);
    // 02:00-03:00 is skipped on 2026-03-29 and comes twice on 2026-10-25.
    assert_eq!(early.at(ms("2026-03-28T02:30:00Z")), Window::Closed(ms("2026-03-30T00:00:00Z")));
    assert_eq!(early.at(ms("2026-10-25T00:30:00Z")), Window::Open(ms("2026-10-25T02:00:00Z")));
    let office = windows("Europe/Berlin", &["daily 09:00-17:00"]);
    assert_eq!(
        office.at(ms("2026-03-28T20:00:00Z")),
        Window::Closed(ms("2026-03-29T07:00:00Z")),
        "UTC+2 now"
    );
}

/// Twice a day of a year and at every time of day, against the wall clock.
#[test]
fn a_year_agrees_with_the_wall_clock() {
    for zone in ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"] {
        let shop = windows(zone, &["mon-sat 08:15-20:00", "daily 23:00-01:30"]);
        let mut now = ms("2026-01-01T00:00:00Z");
        let end = ms("2027-01-01T00:00:00Z");
        while now < end {
            let wall = shop.zone.to_datetime(moment(now));
            let minute = i64::from(wall.hour()) * 60 + i64::from(wall.minute());
            let day = wall.weekday().to_monday_zero_offset() < 6 && (495..1_200).contains(&minute);
            let expected = day || !(90..1_380).contains(&minute);
            let found = shop.at(now);
            assert_eq!(matches!(found, Window::Open(_)), expected, "{zone} {wall}");
            let (Window::Open(change) | Window::Closed(change)) = found;
            assert!(change > now);
            assert_eq!(
                matches!(shop.at(change), Window::Open(_)),
                !expected,
                "{zone} {wall}: a change changes"
            );
            now += 575 * 60_000;
        }
    }
}
