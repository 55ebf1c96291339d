-- A log of 3,000 visits by 400 users. Put your own table in its place.
select 'user-' || (i * 7919 % 397) as visitor, timestamp '2026-01-01' + i * interval 27 minute as visited_at
from range(3000) as events(i)
