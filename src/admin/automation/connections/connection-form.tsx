import { Select } from '@mantine/core'
import type { IntegrationSource, IntegrationSourceChange, NewIntegrationSource } from '../../api/schema'
import { FieldForm, type FormField, type FormValues } from '../../fields/field-form'
import type { InputProps } from '../../fields/field-kind'
import { DraftCheck } from './connection-check'
import { toConnectionBody } from './connection-values'
import { connectionKinds } from './kinds'
import type { ConnectionKindName } from './kinds/connection-kind'
import { SecretInput, STORED_SECRET } from './secret-inputs'

const KIND_CHOICES = Object.entries(connectionKinds).map(([value, { label }]) => ({ value, label }))

const KindInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <Select {...rest} data={KIND_CHOICES} value={String(value ?? '')} onChange={onChange} allowDeselect={false} />
)

const listKindFields = (kind: ConnectionKindName): FormField[] => [
  ...connectionKinds[kind].metadata.map((field) => ({ ...field, key: `metadata/${field.key}` })),
  ...connectionKinds[kind].secrets.map((field) => ({
    ...{ Input: SecretInput, ...field },
    ...{ key: `authentication/${field.key}`, isSecret: true },
  })),
]

const NAME: FormField = { key: 'name', title: 'Name', type: 'string', required: true }
const LABELS: FormField = { key: 'labels', title: 'Labels', type: 'string', multi: true }

/** Fields of two kinds may have one name, so only those of the chosen kind are in the form. */
const newFields: FormField[] = [
  { key: 'kind', title: 'Kind', type: 'string', required: true, default: 'http', Input: KindInput },
  NAME,
  ...(Object.keys(connectionKinds) as ConnectionKindName[]).flatMap((kind) =>
    listKindFields(kind).map((field) => ({ ...field, isHidden: (values: FormValues) => values.kind !== kind })),
  ),
  LABELS,
  { key: 'check', title: 'Check', type: 'string', Input: DraftCheck },
]

const toValues = ({ name, labels, metadata, secrets }: IntegrationSource): FormValues => ({
  ...{ name, labels },
  ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata/${key}`, value])),
  ...Object.fromEntries(secrets.map((key) => [`authentication/${key}`, STORED_SECRET])),
})

type NewConnectionFormProps = {
  id: string
  save(body: NewIntegrationSource): Promise<IntegrationSource>
  onSaved(saved: IntegrationSource): void
}

/** A form for a new connection of any kind. */
export const NewConnectionForm = ({ id, save, onSaved }: NewConnectionFormProps) => (
  <FieldForm
    id={id}
    fields={newFields}
    draftKey="connection:new"
    save={(_, { name, kind, labels, ...values }) =>
      save({
        ...{ name: String(name ?? ''), kind: kind as ConnectionKindName, ...toConnectionBody(values) },
        ...(Array.isArray(labels) && { labels }),
      })
    }
    onSaved={onSaved}
  />
)

type ConnectionFormProps = {
  id: string
  connection: IntegrationSource
  save(body: IntegrationSourceChange): Promise<IntegrationSource>
  onSaved(saved: IntegrationSource): void
}

/** A form that changes a connection. Secrets that are set stay, unless they are replaced. */
export const ConnectionForm = ({ id, connection, save, onSaved }: ConnectionFormProps) => (
  <FieldForm
    id={id}
    fields={[NAME, ...listKindFields(connection.kind), LABELS]}
    before={toValues(connection)}
    draftKey={`connection:${connection._id}`}
    save={({ name, labels, ...changes }) =>
      save({
        ...(name !== undefined && { name: String(name ?? '') }),
        ...(labels !== undefined && { labels: Array.isArray(labels) ? labels : [] }),
        ...toConnectionBody(changes),
      })
    }
    onSaved={onSaved}
  />
)
