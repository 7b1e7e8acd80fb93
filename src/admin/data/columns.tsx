import type { Entity, Field } from '../api/schema'
import { fieldKinds } from '../fields'
import type { Column } from '../ui/data-table'
import { RelativeTime } from '../ui/relative-time'

const MAX_VALUES_SHOWN = 5

/** The value of one field of an entity: a list value by value, nothing for a field without a value. */
function FieldCell({ field, value }: { field: Field; value: unknown }) {
  if (value === undefined || value === null) return null
  const { Cell } = fieldKinds[field.type]
  if (!Array.isArray(value) || !field.multi) return <Cell field={field} value={value} />
  return value.slice(0, MAX_VALUES_SHOWN).map((each, n) => (
    <span key={n}>
      {n > 0 && ', '}
      <Cell field={field} value={each} />
    </span>
  ))
}

const isSortable = ({ type, multi, indexed }: Field) => type !== 'object' && !multi && indexed !== false

/** Returns the columns of a blueprint: its fields, then when an entity was changed. */
export const toColumns = (fields: Field[], widths: Record<string, number>): Column<Entity>[] => [
  ...fields.map(
    (field): Column<Entity> => ({
      key: field.key,
      label: field.title || field.key,
      width: widths[field.key] ?? fieldKinds[field.type].width,
      align: fieldKinds[field.type].align,
      isSortable: isSortable(field),
      render: (entity) => <FieldCell field={field} value={entity[field.key]} />,
    }),
  ),
  {
    key: 'updated',
    label: 'updated',
    width: widths.updated ?? 140,
    isSortable: true,
    render: ({ updated }) => updated && <RelativeTime time={updated} />,
  },
]
