import type { Blueprint, Entity, Field } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { EntityAuthor } from './entity-author'
import { isOwnVersion, refreshLists } from './entity-cache'
import type { LoadedEntity } from './entity-queries'
import { changeEntity, createEntity } from './entity-writes'
import { useFieldAccess } from './field-access'

type EntityFormProps = {
  id: string
  blueprint: Blueprint
  /** Without one, the form creates it. */
  loaded?: LoadedEntity
  /** What a new entity begins with. */
  copied?: Entity
  onSaved: (entity: Entity) => void
}

const IDENTIFIER: FormField = {
  key: 'identifier',
  type: 'string',
  description: 'The name of the entity in addresses. Without one, the server chooses it. It cannot be changed later.',
}

/** Fields of a new entity begin with their defaults, or with what they are in the entity that is copied. */
const toNewFields = (fields: FormField[], copied?: Entity): FormField[] => [
  ...fields
    .filter(({ isReadOnly }) => !isReadOnly)
    .map((field) => (copied ? { ...field, default: field.unique ? undefined : copied[field.key] } : field)),
  IDENTIFIER,
]

/** A form that is made from the fields of a blueprint. */
export function EntityForm({ id, blueprint, loaded, copied, onSaved }: EntityFormProps) {
  const { key, computed = {} } = blueprint
  const entity = loaded?.entity
  const isEditable = useFieldAccess(blueprint)
  const describe = (field: Field) =>
    field.key in computed ? `Computed: ${computed[field.key]}` : (field.description ?? '')
  const fields = blueprint.fields.map(
    (field): FormField => ({ ...field, isReadOnly: !isEditable(field), description: describe(field) }),
  )
  const save = async (changes: FormValues, values: FormValues) => {
    const saved = loaded ? await changeEntity(key, loaded, changes) : await createEntity(key, values)
    await refreshLists(key)
    showNotice(loaded ? 'Saved.' : 'Created.')
    return saved
  }
  return (
    <FieldForm
      id={id}
      fields={entity ? fields : toNewFields(fields, copied)}
      before={entity}
      draftKey={`entity:${key}:${entity?.identifier ?? (copied ? `copy:${copied.identifier}` : '')}`}
      save={save}
      onSaved={onSaved}
      changedBy={entity && isOwnVersion(entity) ? null : entity && <EntityAuthor {...{ blueprint, entity }} />}
    />
  )
}
