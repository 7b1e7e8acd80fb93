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
  /** By number, as long as something may be encrypted with them. */
  formerVaultKeys: Type.Optional(Type.Record(Type.String({ pattern: '^\\d+$' }), KeySchema)),
})
export type Secrets = Static<typeof Secrets>

/** The keys in a JSON text that was kept at `place`. @throws ConfigError for anything else */
export function parseSecrets(text: string, place: string): Secrets {
  const value = tryParseJson(text)
  if (Value.Check(Secrets, value)) return value
  throw new ConfigError(`${place} is damaged: it does not contain valid keys. Restore it from a backup.`)
}

/** The keys in `secrets.json`; undefined where there is none. @throws ConfigError for a damaged one */
export function readSecretsFile(): Secrets | undefined {
  try {
    return parseSecrets(readFileSync(secretsFile, 'utf8'), secretsFile)
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return
    throw error
  }
}

/** Makes the file, on the disk with its name. Returns the keys of whoever did that first. */
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

/** Replaces the file: all of it or nothing, whenever the machine stops. */
export function replaceSecretsFile(secrets: Secrets): Secrets {
  renameSync(writeDraft(secrets), secretsFile)
  fsyncFolder()
  return secrets
}

/** Moves the file to a name under which nobody reads it. Returns that name; undefined where there is no file. */
export function moveSecretsFileAside(): string | undefined {
  if (!existsSync(secretsFile)) return
  const aside = `${secretsFile}.${Date.now()}`
  renameSync(secretsFile, aside)
  return aside
}

/** Whether others than its owner may read the file. */
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
  fsyncSync(folder)
  closeSync(folder)
}
