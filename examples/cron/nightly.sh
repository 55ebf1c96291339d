#!/bin/sh
# Closes the steps up to a day (today by default), and publishes them. Cron knows neither folder nor path.
cd "$(dirname "$0")" || exit 1
day=${1:-$(date -u +%F)}
night() {
    dpwindows stream advance visits.state 'over/*.csv' --through "$day" --later ignore --gaps refuse \
        -o "releases/$day.parquet" --force \
        && dpwindows publish "releases/$day.parquet" reports.duckdb --table visits
}
for pause in 0 10 60 600; do
    sleep "$pause"
    night && exit 0
    status=$?
    [ "$status" = 1 ] || exit "$status"
done
exit 1
