import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Blueprint, Entity } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'

type EntityFormProps = {
  id: string
  blueprint: Blueprint
  /** Without one, the form creates it. */
  entity?: Entity
  etag?: string
  onSaved: (entity: Entity) => void
}

const withoutUndefined = (values: FormValues) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** A form that is made from the fields of a blueprint. */
export function EntityForm({ id, blueprint, entity, etag, onSaved }: EntityFormProps) {
  const { key, fields, computed = {} } = blueprint
  const save = async (changes: FormValues, values: FormValues) => {
    const path = { key, identifier: entity?.identifier ?? '' }
    const answer = entity
      ? api.PUT('/api/blueprints/{key}/entities/{identifier}', {
          params: { path },
          body: changes as never,
          headers: etag ? { 'if-match': etag } : {},
        })
      : api.POST('/api/blueprints/{key}/entities', {
          params: { path: { key } },
          body: withoutUndefined(values) as never,
        })
    const saved = (await fetchData(answer as Promise<{ data?: Entity }>)) as Entity
    await queryClient.invalidateQueries({ queryKey: ['entities', key] })
    showNotice(entity ? 'Saved.' : 'Created.')
    return saved
  }
  return (
    <FieldForm
      id={id}
      fields={fields.filter((field) => !(field.key in computed))}
      before={entity}
      draftKey={`entity:${key}:${entity?.identifier ?? ''}`}
      save={save}
      onSaved={onSaved}
    />
  )
}
