import { Button, Checkbox, Group, Select, TagsInput, TextInput } from '@mantine/core'
import { IconFunction } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import type { ProblemDetail } from '../api/problem'
import { fieldKinds } from '../fields'
import { BoundInputs } from './bound-inputs'
import type { DraftField } from './design-draft'
import { roleNamesQuery } from './design-queries'
import { fieldTraits, ON_DELETE_WORDS } from './field-traits'
import classes from './fields.module.css'
import { FileLimits } from './file-limits'
import { FormulaInput } from './formula-input'
import { IndexInput } from './index-input'
import { SchemaInput } from './schema-input'
import { ValueRows } from './value-rows'

type FieldOptionsProps = {
  field: DraftField
  siblings: DraftField[]
  flaws: ProblemDetail[]
  onChange: (part: Partial<DraftField>) => void
}

const toText = (text: string) => text || undefined

/** All options of a field besides its key and its type. */
export function FieldOptions({ field, siblings, flaws, onChange }: FieldOptionsProps) {
  const { type, multi, formula } = field
  const errorAt = (part: string) => flaws.find(({ path }) => path.endsWith(`/${part}`))?.message
  const errorWithin = (part: string) => flaws.find(({ path }) => path.includes(`/${part}`))?.message
  const { hasChoices } = fieldTraits[type]
  const generalFlaw = flaws.find(({ path }) => path.split('/').length === 3)?.message
  return (
    <>
      {generalFlaw && <p className={classes.flaw}>{generalFlaw}</p>}
      <div className={classes.grid}>
        <TextInput
          label="Title"
          description="Label shown instead of the name."
          value={field.title ?? ''}
          error={errorAt('title')}
          onChange={(event) => onChange({ title: toText(event.currentTarget.value) })}
        />
        <TextInput
          label="Description"
          description="A line of help at its input."
          value={field.description ?? ''}
          error={errorAt('description')}
          onChange={(event) => onChange({ description: toText(event.currentTarget.value) })}
        />
      </div>
      <FieldFlags field={field} errorAt={errorAt} onChange={onChange} />
      <div className={classes.grid}>
        <BoundInputs field={field} errorAt={errorAt} onChange={onChange} />
        {type === 'relation' && (
          <Select
            label="When the other entity is deleted"
            data={Object.entries(ON_DELETE_WORDS).map(([value, label]) => ({ value, label }))}
            value={field.onDelete ?? 'restrict'}
            error={errorAt('onDelete')}
            allowDeselect={false}
            onChange={(onDelete) => onChange({ onDelete: (onDelete ?? undefined) as DraftField['onDelete'] })}
          />
        )}
        {type === 'file' && <FileLimits {...{ field, errorWithin, onChange }} />}
        {formula === undefined && !multi && (
          <DefaultInput field={field} error={errorWithin('default')} onChange={onChange} />
        )}
        <IndexInput field={field} error={errorAt('indexed')} onChange={onChange} />
      </div>
      {formula === undefined && multi && type !== 'object' && (
        <ValueRows
          label="Default"
          description="The list of entities that are created without one."
          noun="default value"
          field={field}
          values={field.default as unknown[] | undefined}
          errorAt={(index) => errorAt(index === undefined ? 'default' : `default/${index}`)}
          onChange={(next) => onChange({ default: next })}
        />
      )}
      {hasChoices && (
        <ValueRows
          label="Choices"
          description="With choices, no other value is allowed."
          noun="choice"
          field={field}
          values={field.enum}
          errorAt={(index) => errorAt(index === undefined ? 'enum' : `enum/${index}`)}
          onChange={(next) => onChange({ enum: next })}
        />
      )}
      {type === 'object' && <SchemaInput value={field.schema} error={errorAt('schema')} onChange={onChange} />}
      {formula === undefined ? (
        <div>
          <Button
            variant="subtle"
            leftSection={<IconFunction size={14} />}
            onClick={() => onChange({ formula: '', default: undefined })}
          >
            Compute it by a formula
          </Button>
        </div>
      ) : (
        <FormulaInput field={field} siblings={siblings} error={errorAt('formula')} onChange={onChange} />
      )}
      <FieldRoles field={field} errorWithin={errorWithin} onChange={onChange} />
    </>
  )
}

type PartProps = Pick<FieldOptionsProps, 'field' | 'onChange'>

/** What is either so or not. */
function FieldFlags({ field, errorAt, onChange }: PartProps & { errorAt: (part: string) => string | undefined }) {
  const { type, multi, required, unique, indexed } = field
  const mayBeUnique = !multi && type !== 'object'
  return (
    <Group gap="lg" align="flex-start">
      <Checkbox
        label="Required"
        checked={!!required}
        error={errorAt('required')}
        onChange={(event) => onChange({ required: event.currentTarget.checked || undefined })}
      />
      <Checkbox
        label="Unique"
        checked={!!unique}
        disabled={!mayBeUnique && !unique}
        error={errorAt('unique')}
        onChange={(event) =>
          onChange({
            unique: event.currentTarget.checked || undefined,
            // Only an indexed field can be unique.
            ...(event.currentTarget.checked && indexed === false && { indexed: undefined }),
          })
        }
      />
      <Checkbox
        label="List of values"
        checked={!!multi}
        error={errorAt('multi')}
        onChange={(event) =>
          onChange({
            multi: event.currentTarget.checked || undefined,
            ...{ default: undefined, min: undefined, max: undefined },
            ...(event.currentTarget.checked && { unique: undefined }),
          })
        }
      />
    </Group>
  )
}

/** The value of entities that are created without one. */
function DefaultInput({ field, error, onChange }: PartProps & { error?: string }) {
  const { Input } = fieldKinds[field.type]
  return (
    <Input
      field={{ ...field, required: false }}
      label="Default"
      description="The value of entities that are created without one."
      value={field.default}
      error={error}
      onChange={(next) => onChange({ default: next })}
    />
  )
}

/** Who may see and who may change a field. */
function FieldRoles({
  field,
  errorWithin,
  onChange,
}: PartProps & { errorWithin: (part: string) => string | undefined }) {
  const { data: roles = [] } = useQuery(roleNamesQuery)
  return (
    <div className={classes.grid}>
      {(['readRoles', 'writeRoles'] as const).map((part) => (
        <TagsInput
          key={part}
          label={part === 'readRoles' ? 'Only these roles read it' : 'Only these roles change it'}
          description="Empty: everybody. *: all who are signed in."
          data={['*', ...roles]}
          value={field[part] ?? []}
          error={errorWithin(part)}
          onChange={(next) => onChange({ [part]: next.length ? next : undefined })}
        />
      ))}
    </div>
  )
}
