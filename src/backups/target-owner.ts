import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { ConfigError } from '../core/config-error'
import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'
import { registry } from '../tenancy/registry'
import { secrets } from '../tenancy/tables'
import { openTarget } from './targets'
import type { BackupTarget } from './targets/backup-target'

/** The file in a target that says whose backups these are. */
const OWNER_FILE = 'installation.json'
const START_TIMEOUT_MS = 5_000 // for which a start waits for the target

const Owner = Type.Object({ id: Type.String(), name: Type.String(), since: Type.String() })
type Owner = Static<typeof Owner>

/** Returns the id of this installation, which its backups and a restored installation keep. */
async function getInstallationId(): Promise<string> {
  const read = () => registry.db.select().from(secrets).where(eq(secrets.name, 'installation')).get()
  const found = await read()
  if (found) return found.value
  await registry.write((tx) =>
    tx.insert(secrets).values({ name: 'installation', value: Bun.randomUUIDv7() }).onConflictDoNothing(),
  )
  return (await read())!.value
}

/**
 * Makes this installation the owner of a target that has none, so that nobody else restores, replaces or removes its
 * backups for their own.
 * @throws 409 BACKUP_TARGET_TAKEN when it belongs to another installation
 */
export async function claimTarget(target: BackupTarget): Promise<void> {
  const id = await getInstallationId()
  requireOwner(target, (await readOwner(target)) ?? (await becomeOwner(target, id)), id)
}

/** @throws 409 BACKUP_TARGET_TAKEN when a target belongs to another installation */
export async function requireOwnTarget(target: BackupTarget): Promise<void> {
  requireOwner(target, await readOwner(target), await getInstallationId())
}

function requireOwner(target: BackupTarget, owner: Owner | undefined, id: string) {
  if (!owner || owner.id === id) return
  throw new Problem(
    409,
    'BACKUP_TARGET_TAKEN',
    `${target.addressOf('')} has the backups of another installation, ${owner.name}, since ${owner.since}. Choose another target. If that installation is gone for good, remove ${target.addressOf(OWNER_FILE)} first.`,
  )
}

/** Tells whether the names in a target include the file that says whose backups these are. */
export const isClaimedTarget = (names: Set<string>) => names.has(OWNER_FILE)

async function readOwner(target: BackupTarget): Promise<Owner | undefined> {
  const content = await target.read(OWNER_FILE)
  const value = content && tryParseJson(await new Response(content).text())
  return Value.Check(Owner, value) ? value : undefined
}

async function becomeOwner(target: BackupTarget, id: string): Promise<Owner | undefined> {
  const owner: Owner = { id, name: `${hostname()}:${resolve(config.ATOLL_TENANTS)}`, since: toIsoString(now()) }
  await target.create(OWNER_FILE, Buffer.from(`${JSON.stringify(owner)}\n`))
  // Another one may have been faster.
  return readOwner(target)
}

/**
 * Claims the target of the settings at a start. One that cannot be reached is claimed before it is used.
 * @throws ConfigError when it belongs to another installation
 */
export async function claimConfiguredTarget(): Promise<void> {
  if (!config.ATOLL_BACKUP_TO) return
  const claiming = claimTarget(openTarget(config.ATOLL_BACKUP_TO)).catch((error) => {
    if (error instanceof Problem && error.code === 'BACKUP_TARGET_TAKEN')
      throw new ConfigError(`ATOLL_BACKUP_TO: ${error.message}`, { cause: error })
  })
  await Promise.race([claiming, Bun.sleep(START_TIMEOUT_MS)])
  claiming.catch(() => {}) // whoever uses the target later is told
}
