import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { tryParseJson } from '../core/json'

export const secretsFile = join(config.ATOLL_TENANTS, 'secrets.json')

const KeySchema = Type.String({ minLength: 16 })
const Secrets = Type.Object({
  signingKey: KeySchema,
  vaultKey: KeySchema,
  /** default: 1 */
  vaultKeyNumber: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Earlier keys by number, as long as data may be encrypted with them. */
  formerVaultKeys: Type.Optional(Type.Record(Type.String({ pattern: '^\\d+$' }), KeySchema)),
})
export type Secrets = Static<typeof Secrets>

/** Returns the keys in a JSON text that was stored at `place`. @throws ConfigError for any other text */
export function parseSecrets(text: string, place: string): Secrets {
  const value = tryParseJson(text)
  if (Value.Check(Secrets, value)) return value
  throw new ConfigError(`${place} is damaged: it does not contain valid keys. Restore it from a backup.`)
}

/**
 * Returns the keys in `secrets.json`, or undefined when there is no file.
 * @throws ConfigError when the file is damaged
 */
export function readSecretsFile(): Secrets | undefined {
  try {
    return parseSecrets(readFileSync(secretsFile, 'utf8'), secretsFile)
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return
    throw error
  }
}

/** Creates the file, on the disk with its folder entry. Returns the keys of the process that created it first. */
export function createSecretsFile(secrets: Secrets): Secrets {
  mkdirSync(config.ATOLL_TENANTS, { recursive: true, mode: 0o700 })
  const draft = writeDraft(secrets)
  try {
    linkSync(draft, secretsFile)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  fsyncFolder()
  return readSecretsFile() ?? secrets
}

/** Replaces the file atomically, also when the machine stops. Returns the keys. */
export function replaceSecretsFile(secrets: Secrets): Secrets {
  renameSync(writeDraft(secrets), secretsFile)
  fsyncFolder()
  return secrets
}

/** Renames the file, so that it is not used any more. Returns the new name, or undefined when there is no file. */
export function moveSecretsFileAside(): string | undefined {
  if (!existsSync(secretsFile)) return
  const aside = `${secretsFile}.${Date.now()}`
  renameSync(secretsFile, aside)
  return aside
}

/** Tells whether other users of the machine may read the file. */
export function isSecretsFileExposed(): boolean {
  const mode = statSync(secretsFile, { throwIfNoEntry: false })?.mode ?? 0
  return process.platform !== 'win32' && (mode & 0o077) !== 0
}

export const restrictSecretsFile = () => chmodSync(secretsFile, 0o600)

function writeDraft(secrets: Secrets): string {
  const draft = `${secretsFile}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600, flush: true })
  return draft
}

function fsyncFolder() {
  if (process.platform === 'win32') return
  const folder = openSync(config.ATOLL_TENANTS, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
