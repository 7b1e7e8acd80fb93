import type { TObject } from '@sinclair/typebox'
import { badRequest, type FieldError } from '../core/problem'
import { partialOf } from '../core/shapes'
import { listMisspelledKeys, listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors } from '../core/validation'
import { weakCached } from '../core/weak-cache'
import { toOrigin } from '../http/allowed-origins'
import { settingsShapes } from '../platform/settings/tenant-settings'

const MAX_METADATA_CHARACTERS = 64 << 10 // characters, as JSON

/** What is sent for settings may leave out any of them. */
const toPartialShape = weakCached<TObject, TObject>(partialOf)

export type Metadata = Record<string, unknown>

/**
 * The metadata of a configuration with what was sent for it: key by key, `null` takes one away. Keys that the server does
 * not know are the tenant's own. `at` is where it stood in the body. @throws 400
 */
export function mergeMetadata(key: string, before: Metadata, sent: Metadata, basePath: '' | '/metadata'): Metadata {
  const setValues = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== null))
  const shape = settingsShapes().get(key)
  const errors = shape ? validateSettings(toPartialShape(shape), setValues, before, basePath) : []
  if (!errors.length && key === 'app-configuration')
    errors.push(...validateWebsiteUrls(setValues.websiteUrls as string[] | undefined, basePath))
  if (errors.length) badRequest(...errors)
  const entries = Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null)
  const metadata = Object.fromEntries(entries)
  if (JSON.stringify(metadata).length > MAX_METADATA_CHARACTERS)
    badRequest({ path: basePath, message: `All metadata together has at most ${MAX_METADATA_CHARACTERS} characters.` })
  return metadata
}

/** What the server reads must be right, parts of it without unknown keys; what looks like a misspelling of it is none. */
const validateSettings = (shape: TObject, setValues: Metadata, before: Metadata, at: string): FieldError[] => [
  ...listUnknownKeys(shape, setValues, at),
  ...listMisspelledKeys(setValues, Object.keys(shape.properties), at, before),
  ...listFieldErrors(shape, setValues, at),
]

function validateWebsiteUrls(urls: string[] = [], at: string): FieldError[] {
  return urls.flatMap((url, n) => {
    const { username, password } = URL.parse(url) ?? {}
    if (toOrigin(url) && !username && !password) return []
    return [
      {
        path: `${at}/websiteUrls/${n}`,
        message: `"${url}" is not the address of a website, such as https://app.example.com.`,
      },
    ]
  })
}
