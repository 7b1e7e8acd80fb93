import type { OperatorHomes } from '../api/schema'

/** Returns a home in plain words. A file has none, or the name `sqlite`. */
export function describeHome(home: string | undefined): string {
  if (!home || home === 'sqlite') return 'File on this machine'
  return home === 'postgres' ? 'PostgreSQL, the emptiest bucket' : `PostgreSQL, bucket ${home}`
}

/** Returns a home as a part of a sentence. */
export function nameHome(home: string): string {
  if (home === 'sqlite') return 'a file on this machine'
  return home === 'postgres' ? 'the emptiest bucket of PostgreSQL' : `bucket ${home} of PostgreSQL`
}

const describeCount = (tenants: number) => `${tenants.toLocaleString()} ${tenants === 1 ? 'tenant' : 'tenants'}`

/** Returns the homes to which a tenant can be moved from its own, as groups of choices. */
export function listTargets({ sqlite, postgres }: OperatorHomes, home: string | undefined) {
  const groups = postgres.clusters.map(({ name, usable, buckets }) => ({
    group: usable ? `Cluster ${name}` : `Cluster ${name}, which cannot be reached`,
    items: buckets
      .filter((bucket) => bucket.home !== home)
      .map((bucket) => ({
        value: bucket.home,
        label: `Bucket ${bucket.home}, ${describeCount(bucket.tenants)}`,
        disabled: !usable,
      })),
  }))
  const simple = home
    ? { value: 'sqlite', label: `${describeHome(undefined)}, ${describeCount(sqlite.tenants)}` }
    : { value: 'postgres', label: describeHome('postgres') }
  return [simple, ...groups.filter(({ items }) => items.length)]
}
