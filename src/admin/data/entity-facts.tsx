import { Text } from '@mantine/core'
import type { Entity } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { ShortId } from '../ui/short-id'
import { OwnerLabel, systemFields } from './system-fields'

/** What every entity has beside its fields: its identifier, its times, and whose it is. */
export function EntityFacts({ entity }: { entity: Entity }) {
  const { identifier, created, updated } = entity
  const owners = systemFields.filter(({ key }) => (key === 'user' || key === 'workspace') && entity[key])
  return (
    <Text size="xs" c="dimmed" component="div" mt="lg">
      <ShortId id={identifier} /> · created {created && <RelativeTime time={created} />} · changed{' '}
      {updated && <RelativeTime time={updated} />}
      {owners.map((field) => (
        <span key={field.key}>
          {' '}
          · {field.title ?? field.key} <OwnerLabel field={field} id={String(entity[field.key])} />
        </span>
      ))}
    </Text>
  )
}
