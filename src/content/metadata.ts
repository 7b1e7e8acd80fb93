import type { TObject } from '@sinclair/typebox'
import { originOf } from '../accounts/origins'
import { settings } from '../accounts/settings'
import { type Flaw, invalid } from '../core/problem'
import { change } from '../core/shapes'
import { listMisspelledKeys, listUnknownKeys } from '../core/unknown-keys'
import { listFlaws } from '../core/validation'

const SIZE = 64 << 10 // characters, as JSON

export type Metadata = Record<string, unknown>

/** What is sent for a key of the server's settings, which it must be able to go by. */
const checks = new Map(Object.entries<TObject>(settings).map(([key, shape]) => [key, change(shape)]))

/**
 * The metadata of a configuration with what was sent for it: key by key, `null` takes one away. Keys that the server does
 * not know are the tenant's own. `at` is where it stood in the body. @throws 400
 */
export function merged(key: string, before: Metadata, sent: Metadata, at: '' | '/metadata'): Metadata {
  const given = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== null))
  const shape = checks.get(key)
  const flaws = shape ? flawsOf(shape, given, before, at) : []
  if (!flaws.length && key === 'app-configuration')
    flaws.push(...websiteFlaws(given.websiteUrls as string[] | undefined, at))
  if (flaws.length) invalid(...flaws)
  const kept = Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null)
  const metadata = Object.fromEntries(kept)
  if (JSON.stringify(metadata).length > SIZE)
    invalid({ path: at, message: `All metadata together has at most ${SIZE} characters.` })
  return metadata
}

/** What the server reads must be right, parts of it without unknown keys; what looks like a misspelling of it is none. */
const flawsOf = (shape: TObject, given: Metadata, before: Metadata, at: string): Flaw[] => [
  ...listUnknownKeys(shape, given, at),
  ...listMisspelledKeys(given, Object.keys(shape.properties), at, before),
  ...listFlaws(shape, given, at),
]

function websiteFlaws(urls: string[] = [], at: string): Flaw[] {
  return urls.flatMap((url, n) => {
    const { username, password } = URL.parse(url) ?? {}
    if (originOf(url) && !username && !password) return []
    return [
      {
        path: `${at}/websiteUrls/${n}`,
        message: `"${url}" is not the address of a website, such as https://app.example.com.`,
      },
    ]
  })
}
