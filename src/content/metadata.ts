import type { TObject } from '@sinclair/typebox'
import { badRequest, type FieldError } from '../core/problem'
import { partialOf } from '../core/shapes'
import { listMisspelledKeys, listStrayKeys, listUnknownKeys } from '../core/unknown-keys'
import { listFieldErrors } from '../core/validation'
import { weakCached } from '../core/weak-cache'
import { toOrigin } from '../http/allowed-origins'
import { settingsShapes } from '../platform/settings/tenant-settings'

const MAX_METADATA_CHARACTERS = 64 << 10 // characters of JSON

/** Sent settings may omit any key. */
const toPartialShape = weakCached<TObject, TObject>(partialOf)

export type Metadata = Record<string, unknown>

/** Configurations that the server reads. They can never be public, because they may be confidential. */
export const SERVER_CONFIGURATIONS = [
  ...['ai-configuration', 'auth-configuration', 'files-configuration', 'limits-configuration', 'mail-templates'],
  ...['payments-configuration', 'workspace-configuration'],
]

/**
 * Returns the metadata of a configuration after a change: each sent key replaces the stored one, and `null` removes it.
 * What is sent back as it is stored passes, even if it is not valid any more. `basePath` is the path of `sent` in the
 * body. @throws 400 for invalid values, and for unknown keys of a configuration that the server reads
 */
export function mergeMetadata(key: string, before: Metadata, sent: Metadata, basePath: '' | '/metadata'): Metadata {
  const setValues = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== null))
  const errors = listMetadataErrors(key, setValues, basePath).filter(
    ({ path }) => !isUnchangedAt(toSteps(path.slice(basePath.length)), before, setValues),
  )
  if (!errors.length && key === 'app-configuration')
    errors.push(...validateWebsiteUrls(setValues.websiteUrls as string[] | undefined, basePath))
  if (errors.length) badRequest(...errors)
  const entries = Object.entries({ ...before, ...sent }).filter(([, value]) => value !== null)
  const metadata = Object.fromEntries(entries)
  if (JSON.stringify(metadata).length > MAX_METADATA_CHARACTERS)
    badRequest({ path: basePath, message: `All metadata together has at most ${MAX_METADATA_CHARACTERS} characters.` })
  return metadata
}

/** Returns a warning for everything in stored metadata that the server ignores, because it is unknown or invalid. */
export const listMetadataWarnings = (key: string, metadata: Metadata, at = '/metadata') =>
  SERVER_CONFIGURATIONS.includes(key) || key === 'app-configuration'
    ? listMetadataErrors(key, metadata, at).map((error) => ({ ...error, code: 'IGNORED_SETTING' }))
    : []

/** Configurations of the server know all of their keys; the app configuration refuses only what looks misspelled. */
function listMetadataErrors(key: string, values: Metadata, at: string): FieldError[] {
  const whole = settingsShapes().get(key)
  if (!whole) return []
  const [shape, known] = [toPartialShape(whole), Object.keys(whole.properties)]
  return [
    ...listUnknownKeys(shape, values, at),
    ...(SERVER_CONFIGURATIONS.includes(key) ? listStrayKeys : listMisspelledKeys)(values, known, at),
    ...listFieldErrors(shape, values, at),
  ]
}

/** Tells whether the part of a value that an error is about is stored already. A missing part is about its parent. */
function isUnchangedAt([step, ...steps]: string[], before: unknown, sent: unknown): boolean {
  if (step === undefined || !isRecordOrList(sent) || !Object.hasOwn(sent, step)) return Bun.deepEquals(before, sent)
  return isRecordOrList(before) && isUnchangedAt(steps, before[step], sent[step])
}

const isRecordOrList = (value: unknown): value is Metadata => typeof value === 'object' && value !== null
/** Returns the keys of a JSON pointer. */
const toSteps = (pointer: string) =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

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
