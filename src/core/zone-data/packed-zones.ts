import { readFileSync } from 'node:fs'
import packedFile from 'moment-timezone/data/packed/latest.json' with { type: 'file' }
import { MINUTE_MS } from '../clock'
import type { ZoneData } from './zone-data'
import type { ZoneRules } from './zone-rules'

/** The package lists changes until the end of this year. A zone that changes in it goes on doing so for ever. */
const LAST_YEAR = 2499

/** Reads the rules that come with Atoll, from the package `moment-timezone`. */
export function readPackedZones(): ZoneData & { links: Map<string, string> } {
  const { version, zones, links } = JSON.parse(readFileSync(packedFile, 'utf8')) as {
    version: string
    zones: string[]
    links: string[]
  }
  const packed = new Map(zones.map((zone) => [zone.slice(0, zone.indexOf('|')), zone]))
  const targets = new Map(links.map((link) => link.split('|').reverse() as [string, string]))
  return {
    version,
    origin: 'built-in',
    links: targets,
    names: [...packed.keys(), ...targets.keys()],
    readRules(name) {
      const text = packed.get(targets.get(name) ?? name)
      return text === undefined ? undefined : unpackZone(text)
    },
  }
}

/** Reads `name|abbreviations|offsets|indexes|differences|population`, whose numbers are minutes with the base 60. */
function unpackZone(text: string): ZoneRules {
  const [, , offsetTexts = '', indexes = '', differences = ''] = text.split('|')
  // The package counts west of Greenwich as positive.
  const kinds = offsetTexts.split(' ').map((packed) => -readBase60(packed))
  const starts = [Number.NEGATIVE_INFINITY]
  let start = 0
  for (const difference of differences.split(' ').filter(Boolean)) {
    start += readBase60(difference)
    starts.push(start)
  }
  const offsets = [...(indexes || '0')].map((index) => kinds[readDigit(index)]!)
  return { starts, offsets, repeats: start >= Date.UTC(LAST_YEAR) }
}

const readDigit = (digit: string) => parseInt(digit, 36) + (digit >= 'A' && digit <= 'Z' ? 26 : 0)

/** Returns the ms of a number of minutes, which may have seconds behind a dot. */
function readBase60(text: string): number {
  const [minutes = '', seconds = ''] = text.replace('-', '').split('.')
  const read = (digits: string) => [...digits].reduce((sum, digit) => sum * 60 + readDigit(digit), 0)
  const ms = read(minutes) * MINUTE_MS + (read(seconds) * MINUTE_MS) / 60 ** seconds.length
  return text.startsWith('-') ? -ms : ms
}
