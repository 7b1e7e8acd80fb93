import { useCallback } from 'react'
import { queryClient } from '../api/queries'
import { entityCountQuery } from '../data/entity-queries'
import { confirmAction } from '../ui/confirmation'
import { EmptyState } from '../ui/empty-state'
import classes from './design.module.css'
import { type DraftField, isNewField, renameField } from './design-draft'
import { useDesign } from './design-state'
import { FieldList } from './field-list'

/** Returns how many entities have a value in a field, or undefined when the server cannot tell. */
const countValues = (blueprint: string, key: string) =>
  queryClient
    .fetchQuery({ ...entityCountQuery(blueprint, { [`${key}[$exists]`]: 'true' }), retry: false })
    .catch(() => undefined)

/** The fields of a blueprint. */
export function DesignFields() {
  const { before, draft, update, updateFields, flaws } = useDesign()
  const rename = useCallback((id: string, key: string) => update((now) => renameField(now, id, key)), [update])
  const { key: blueprint, name } = before
  const confirmRemoval = useCallback(
    async (field: DraftField) => {
      if (isNewField(field)) return true
      const count = await countValues(blueprint, field.id)
      if (count === 0) return true
      return confirmAction({
        title: `Remove the field “${field.id}”?`,
        text: count
          ? `${count.toLocaleString()} ${name.toLowerCase()} have a value in it. These values go when you save.`
          : 'The values in it go when you save.',
        action: 'Remove field',
        typedName: field.id,
      })
    },
    [blueprint, name],
  )
  return (
    <div className={classes.column}>
      {draft.fields.length === 0 && <EmptyState text="There are no fields yet." />}
      <FieldList
        fields={draft.fields}
        updateFields={updateFields}
        onRename={rename}
        confirmRemoval={confirmRemoval}
        flaws={flaws}
      />
    </div>
  )
}
