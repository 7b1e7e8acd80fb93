import { useSyncExternalStore } from 'react'

const UPDATE_INTERVAL_MS = 30_000
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]
const words = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

function toWords(moment: number): string {
  const seconds = (moment - Date.now()) / 1_000
  const [unit, size] = UNITS.find(([, unitSeconds]) => Math.abs(seconds) >= unitSeconds) ?? ['second', 1]
  return words.format(Math.round(seconds / size), unit)
}

function subscribeToClock(onTick: () => void) {
  const timer = setInterval(onTick, UPDATE_INTERVAL_MS)
  return () => clearInterval(timer)
}
const readClock = () => Math.floor(Date.now() / UPDATE_INTERVAL_MS)

/** Returns a moment as the locale writes it, or what is no moment as it is. */
export function formatMoment(time: string): string {
  const moment = Date.parse(time)
  return Number.isNaN(moment) ? time : exact.format(moment)
}

/** A moment in relation to now, which goes on while the screen stays open, with the exact one on hover. */
export function RelativeTime({ time }: { time: string }) {
  useSyncExternalStore(subscribeToClock, readClock)
  const moment = Date.parse(time)
  if (Number.isNaN(moment)) return <span>{time}</span>
  return (
    <time dateTime={time} title={exact.format(moment)}>
      {toWords(moment)}
    </time>
  )
}
