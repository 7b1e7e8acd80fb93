const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
const words = new Intl.ListFormat('en', { type: 'conjunction' })

const isNumber = (part: string) => /^\d+$/.test(part)
const readStep = (part: string) => /^\*\/(\d+)$/.exec(part)?.[1]
const padTwo = (text: string) => text.padStart(2, '0')

/** Returns the names of a list such as `MON,WED` or `1-5`; undefined when it says something else. */
function readNames(part: string, names: readonly string[], first: number): string[] | undefined {
  const find = (text: string) =>
    isNumber(text)
      ? names[(Number(text) - first) % names.length]
      : names.find((name) => name.slice(0, 3).toUpperCase() === text.toUpperCase())
  const foundNames = part.split(',').flatMap((item): (string | undefined)[] => {
    const [from, to] = item.split('-').map(find)
    if (!item.includes('-') || !from || !to) return [item.includes('-') ? undefined : from]
    return names.slice(names.indexOf(from), names.indexOf(to) + 1)
  })
  return foundNames.length && foundNames.every((name) => name !== undefined)
    ? [...new Set(foundNames as string[])]
    : undefined
}

/** Returns at what time of a day, and whether it is at few times of it. */
function describeTime(minute: string, hour: string): { text: string; isFixed: boolean } | undefined {
  const hours = hour.split(',')
  if (isNumber(minute) && hours.every(isNumber))
    return { text: `at ${words.format(hours.map((each) => `${padTwo(each)}:${padTwo(minute)}`))}`, isFixed: true }
  const atMinute = minute === '0' ? '' : ` at minute ${minute}`
  if (isNumber(minute) && hour === '*') return { text: `every hour${atMinute}`, isFixed: false }
  if (isNumber(minute) && readStep(hour)) return { text: `every ${readStep(hour)} hours${atMinute}`, isFixed: false }
  if (hour !== '*') return
  if (minute === '*' || readStep(minute) === '1') return { text: 'every minute', isFixed: false }
  if (readStep(minute)) return { text: `every ${readStep(minute)} minutes`, isFixed: false }
}

/** Returns on which days; an empty text for all of them. */
function describeDays(day: string, weekday: string): string | undefined {
  if (day === '*' && weekday === '*') return ''
  if (day !== '*' && weekday !== '*') return
  if (weekday !== '*') {
    const names = readNames(weekday, WEEKDAYS, 0)
    if (names?.join() === WEEKDAYS.slice(1, 6).join()) return 'on weekdays'
    return names && `on ${words.format(names)}`
  }
  if (day === 'L') return 'on the last day of the month'
  return day.split(',').every(isNumber) ? `on day ${words.format(day.split(','))} of the month` : undefined
}

/** Returns a schedule in words, such as `On Monday at 09:00`; undefined for one that is too special. */
export function describeCron(cron: string): string | undefined {
  const parts = cron.trim().split(/\s+/)
  if (parts.length === 6 && parts[0] === '0') parts.shift()
  const [minute, hour, day, month, weekday] = parts
  if (parts.length !== 5 || !minute || !hour || !day || !month || !weekday) return
  const [time, days] = [describeTime(minute, hour), describeDays(day.replace('?', '*'), weekday.replace('?', '*'))]
  const months = month === '*' ? [] : readNames(month, MONTHS, 1)
  if (!time || days === undefined || !months) return
  const dayText = days || (time.isFixed ? 'every day' : '')
  const sentence = [dayText, time.text, months.length ? `in ${words.format(months)}` : ''].filter(Boolean).join(' ')
  return sentence[0]!.toUpperCase() + sentence.slice(1)
}
