// Prints what rules about time answer, for a test that runs this in several time zones.

import { parseFolderName, toFolderName } from '../../src/backups/folder-name'
import { listExpired } from '../../src/backups/retention'
import { HOUR_MS, moveClock, parseIsoDateTime, toIsoString } from '../../src/core/clock'
import { findNextDue } from '../../src/integrations/triggers/schedule'
import { currentPeriod } from '../../src/limits/quota-periods'

// Clocks go forward in St. John's on 8 March and back on 1 November.
const CHANGES = ['2026-03-08T03:00:00Z', '2026-11-01T02:00:00Z'].map(Date.parse)
const moments = CHANGES.flatMap((change) => Array.from({ length: 24 }, (_, n) => change + (n - 8) * HOUR_MS))
const schedules = ['30 2 * * *', '0 0 1 * *', '*/30 * * * *', '0 9 * * MON'].flatMap((cron) =>
  [undefined, 'Europe/Lisbon', 'America/St_Johns', 'Asia/Kolkata'].map((timezone) => ({ cron, timezone })),
)

const answers = {
  due: schedules.map((schedule) => moments.map((moment) => findNextDue(schedule, moment))),
  periods: moments.map((moment) => {
    moveClock(moment)
    return [currentPeriod('mails'), currentPeriod('aiTokens'), toIsoString(moment)]
  }),
  names: moments.map((moment) => [
    toFolderName(toIsoString(moment)),
    parseFolderName(toFolderName(toIsoString(moment))),
  ]),
  expired: listExpired(moments, { daily: 2, weekly: 1, monthly: 1, log: 0 }),
  times: ['2026-01-01', '2026-01-01T10:00', '2026-07-01T10:00:30.5', '2026-07-01T10:00+05:30'].map(parseIsoDateTime),
}
console.log(JSON.stringify({ zone: new Date(moments[0]!).getTimezoneOffset(), answers }))
