import { useState } from 'react'
import { findFieldError } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Blueprint, Entity, Field } from '../api/schema'
import { findFieldFlaw } from '../fields/validation'
import type { CellEditor } from '../ui/data-table'
import { showProblem, showUndo } from '../ui/notices'
import { patchRows } from './entity-cache'
import { toEntityLabel } from './entity-label'
import { entityQuery } from './entity-queries'
import { changeEntity, EntityConflict, isSameValue, readEntity } from './entity-writes'
import { InlineEditor } from './inline-editor'

type Edit = { entity: Entity; field: Field; value: unknown; error?: string }

/** Changes a value of a row, which shows it at once. */
async function saveValue(blueprint: string, { entity, field, value }: Edit): Promise<Entity> {
  const { identifier } = entity
  const change = { [field.key]: value ?? null }
  patchRows(blueprint, identifier, (row) => ({ ...row, [field.key]: value }))
  const read = queryClient.getQueryData(entityQuery(blueprint, identifier).queryKey)
  // What others wrote before the row showed it must not be overwritten unseen.
  const isStale = read && !isSameValue(read.entity[field.key], entity[field.key])
  const saving = isStale
    ? Promise.reject(new EntityConflict(read.entity, [field.key]))
    : changeEntity(blueprint, { entity, etag: read?.etag }, change)
  return saving.catch((error) => {
    const current = error instanceof EntityConflict ? error.current : entity
    patchRows(blueprint, identifier, () => current)
    throw error
  })
}

/** Returns what a refused change shows at its value. */
function describeFailure(error: unknown, field: Field): string {
  if (error instanceof EntityConflict)
    return `Someone else changed it to ${JSON.stringify(error.current[field.key] ?? null)}. Enter saves yours.`
  return findFieldError(error, field.key) ?? (error instanceof Error ? error.message : String(error))
}

/** Changing values in their cells: what was typed shows at once, and comes back when the server refuses it. */
export function useInlineEdit({ key, fields }: Pick<Blueprint, 'key' | 'fields'>, editable: (field: Field) => boolean) {
  const [edit, setEdit] = useState<Edit>()
  const reopen = (failed: Edit, error: unknown) => {
    const entity = error instanceof EntityConflict ? error.current : failed.entity
    const reopened = { ...failed, entity, error: describeFailure(error, failed.field) }
    setEdit((now) => {
      if (now) showProblem(error)
      return now ?? reopened
    })
  }
  const save = async (finished: Edit) => {
    const { entity, field, value } = finished
    if (isSameValue(value, entity[field.key])) return setEdit(undefined)
    const flaw = findFieldFlaw(field, value)
    if (flaw) return setEdit({ ...finished, error: flaw })
    setEdit(undefined)
    try {
      const saved = await saveValue(key, finished)
      const undo = () => saveValue(key, { entity: saved, field, value: entity[field.key] })
      showUndo(`Changed ${field.title || field.key} of ${toEntityLabel(entity)}.`, undo)
    } catch (error) {
      reopen(finished, error)
    }
  }
  const begin = (entity: Entity, column: string) => {
    const field = fields.find((each) => each.key === column)
    if (!field || !editable(field)) return
    const value = entity[column]
    readEntity(key, entity.identifier).then(
      ({ entity: fresh }) => {
        patchRows(key, entity.identifier, () => fresh)
        setEdit((now) =>
          now?.entity === entity && isSameValue(now.value, value)
            ? { ...now, entity: fresh, value: fresh[column] }
            : now,
        )
      },
      () => {
        // Without its version, the change is sent without a condition.
      },
    )
    if (field.type === 'boolean' && !field.multi) return void save({ entity, field, value: value !== true })
    setEdit({ entity, field, value })
  }
  const editor: CellEditor | undefined = edit && {
    rowKey: edit.entity.identifier,
    column: edit.field.key,
    content: (
      <InlineEditor
        field={edit.field}
        value={edit.value}
        error={edit.error}
        onChange={(value) => setEdit({ ...edit, value, error: undefined })}
        onSave={(value) => save({ ...edit, value })}
        onCancel={() => setEdit(undefined)}
      />
    ),
  }
  return { editor, begin }
}
