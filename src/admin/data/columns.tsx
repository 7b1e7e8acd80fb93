import type { Entity, Field } from '../api/schema'
import { fieldKinds } from '../fields'
import { ValueCell } from '../fields/value-cell'
import type { Column } from '../ui/data-table'
import { RelativeTime } from '../ui/relative-time'
import { isSystemField, OwnerLabel } from './system-fields'

const TIME_WIDTH_PX = 140
const CHOICE_WIDTH_PX = 130

function SystemCell({ field, entity }: { field: Field; entity: Entity }) {
  const value = entity[field.key]
  if (typeof value !== 'string') return null
  if (field.type === 'datetime') return <RelativeTime time={value} />
  return field.key === 'identifier' ? <bdi>{value}</bdi> : <OwnerLabel field={field} id={value} />
}

const isSortable = ({ type, multi, indexed }: Field) => type !== 'object' && !multi && indexed !== false

/** Returns the columns of a list. `isEditable` says which values can be changed in place. */
export const toColumns = (
  fields: Field[],
  widths: Record<string, number>,
  isEditable: (field: Field) => boolean,
): Column<Entity>[] =>
  fields.map((field) => {
    const { width, align } = fieldKinds[field.type]
    const isSystem = isSystemField(field)
    return {
      key: field.key,
      label: field.title || field.key,
      width:
        widths[field.key] ??
        (field.enum ? CHOICE_WIDTH_PX : isSystem && field.type === 'datetime' ? TIME_WIDTH_PX : width),
      align: field.multi ? undefined : align,
      isSortable: isSortable(field),
      isEditable: !isSystem && isEditable(field),
      render: (entity) =>
        isSystem ? <SystemCell field={field} entity={entity} /> : <ValueCell field={field} value={entity[field.key]} />,
    }
  })
