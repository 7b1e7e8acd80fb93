import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import { t } from 'elysia'
import { registry } from '../../core/extension'
import type { Store } from '../../storage/port'
import { cached } from '../../tenancy/cache'
import { configurations } from './tables'

/** Settings of a tenant: the key of the configuration that holds them, and their shape with defaults. */
export type Settings<Shape extends TObject = TObject> = { key: string; shape: Shape }

/** Returns settings whose configuration has this key, with the exact types of key and shape. */
export const defineSettings = <Key extends string, Shape extends TObject>(key: Key, shape: Shape) => ({ key, shape })

/** Shapes of the settings that the server reads, by the key of their configuration. */
export const settingsShapes = registry<TObject>('settings of tenants')

/** Returns the shapes of settings by the key of their configuration. */
export const toShapes = (...settings: Settings[]) => Object.fromEntries(settings.map(({ key, shape }) => [key, shape]))

/** Returns the shape of a list of names; default: an empty list. */
export const nameList = (description: string) =>
  t.Array(t.String({ minLength: 1, maxLength: 100 }), { maxItems: 1_000, default: [], description })

/**
 * Returns a tenant's settings, with defaults for the rest, from a cache. A change of a configuration invalidates it by
 * the topic `configurations`.
 */
export const getSettings = <Shape extends TObject>(
  tenant: Pick<Store, 'db' | 'remoteVersion'>,
  { key, shape }: Settings<Shape>,
) =>
  cached(tenant, 'configurations', `settings ${key}`, async () => {
    const { metadata } = configurations
    const row = await tenant.db.select({ metadata }).from(configurations).where(eq(configurations.key, key)).get()
    return pickValidParts(shape, row?.metadata ?? {}) as Static<Shape>
  })

/** Returns the valid values; an invalid one counts as not set. */
function pickValidParts(shape: TObject, values: Record<string, unknown>) {
  const valid = Object.entries(shape.properties).filter(([key, part]) => Value.Check(part, values[key]))
  return Value.Default(shape, Object.fromEntries(valid.map(([key]) => [key, values[key]])))
}
