let shift = 0

/** Milliseconds since 1970 (UTC). Every rule about time asks here and nowhere else, so that a test can move it. */
export const now = () => Date.now() + shift

/** Lets time go on from the given moment (ms since 1970). */
export function moveClock(to: number) {
  shift = to - Date.now()
}

/** A day in ms. */
export const DAY = 86_400_000
let [day, date] = [Number.NaN, '']

/** ISO 8601 in UTC with milliseconds. Lists hold dozens of times of few days: remembering the day makes it five times faster. */
export function iso(ms: number): string {
  const today = Math.floor(ms / DAY)
  if (today !== day) [day, date] = [today, new Date(today * DAY).toISOString().slice(0, -14)]
  const left = ms - today * DAY
  const two = (value: number) => (value < 10 ? `0${value}` : value)
  const [hours, minutes, seconds, rest] = [(left / 3_600_000) | 0, (left / 60_000) | 0, (left / 1000) | 0, left % 1000]
  const three = rest < 10 ? `00${rest}` : rest < 100 ? `0${rest}` : rest
  return `${date}T${two(hours)}:${two(minutes % 60)}:${two(seconds % 60)}.${three}Z`
}

const MOMENT = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Whether a text is a moment that exists, as ISO 8601 has it, with its time zone. */
export const isMoment = (text: string) => isDate(MOMENT.exec(text)?.[1] ?? '')

/** Whether a text is a day that exists, as YYYY-MM-DD: the calendar turns 31 April into 1 May. */
export function isDate(text: string) {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
  return !!day && !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}
