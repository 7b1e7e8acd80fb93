import { Select } from '@mantine/core'
import type { Integration, NewIntegration } from '../../api/schema'
import { FieldForm, type FormField, type FormValues } from '../../fields/field-form'
import type { InputProps } from '../../fields/field-kind'
import { PluginInput } from './plugin-input'
import { targets } from './targets'
import type { TargetName } from './targets/target-kind'
import { triggers } from './triggers'
import type { TriggerName } from './triggers/trigger-kind'

/** Returns an input that chooses a kind by the words of its sentence. */
const createKindInput = (kinds: Record<string, { label: string }>) => {
  const choices = Object.entries(kinds).map(([value, { label }]) => ({ value, label }))
  return ({ field: _, value, onChange, ...rest }: InputProps) => (
    <Select {...rest} data={choices} value={String(value ?? '')} onChange={onChange} allowDeselect={false} />
  )
}
const TriggerKindInput = createKindInput(triggers)
const TargetKindInput = createKindInput(targets)

/** Returns the fields of all kinds of a part; only those of the chosen kind are shown. */
const listKindFields = (part: 'trigger' | 'target', kinds: Record<string, { fields: FormField[] }>): FormField[] =>
  Object.entries(kinds).flatMap(([kind, { fields }]) =>
    fields.map((field) => ({
      ...field,
      key: `${part}/${field.key}`,
      isHidden: (values) => values[`${part}/kind`] !== kind || !!field.isHidden?.(values),
    })),
  )

const hasNoCaller = (values: FormValues) => !triggers[values['trigger/kind'] as TriggerName]?.hasCaller

const fields: FormField[] = [
  { key: 'name', title: 'Name', type: 'string' },
  { key: 'trigger/kind', title: 'When', type: 'string', default: 'webhook', Input: TriggerKindInput },
  ...listKindFields('trigger', triggers),
  { key: 'target/kind', title: 'Then', type: 'string', default: 'lambda', Input: TargetKindInput },
  ...listKindFields('target', targets),
  { key: 'guest', title: 'Everybody may call it, also without a sign-in', type: 'boolean', isHidden: hasNoCaller },
  {
    key: 'roles',
    title: 'Roles that may call it',
    description: 'Default: all signed-in users.',
    type: 'string',
    multi: true,
    isHidden: (values) => hasNoCaller(values) || values.guest === true,
  },
  {
    key: 'workspaceRoles',
    title: 'Roles in the active workspace that may call it',
    type: 'string',
    multi: true,
    isHidden: (values) => hasNoCaller(values) || values.guest === true,
  },
  { key: 'plugin', title: 'Plugin that it belongs to', type: 'string', Input: PluginInput },
]

const flatten = (part: string, values: object) =>
  Object.entries(values).map(([key, value]) => [`${part}/${key}`, value] as const)

const toValues = ({ name, guest, roles, workspaceRoles, plugin, trigger, target }: Integration): FormValues => ({
  ...{ name: name ?? undefined, guest, roles, workspaceRoles, plugin: plugin ?? undefined },
  ...Object.fromEntries([...flatten('trigger', trigger), ...flatten('target', target)]),
})

/** Returns the properties of a part without those that have no value. */
const toPart = (part: string, values: FormValues) =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([key, value]) => key.startsWith(`${part}/`) && value !== undefined && value !== null)
      .map(([key, value]) => [key.slice(part.length + 1), value]),
  )

const toBody = ({ name, guest, roles, workspaceRoles, plugin, ...values }: FormValues): NewIntegration => ({
  name: (name as string) ?? null,
  guest: guest === true,
  roles: (roles as string[]) ?? [],
  workspaceRoles: (workspaceRoles as string[]) ?? [],
  plugin: (plugin as string) ?? null,
  trigger: toPart('trigger', values) as NewIntegration['trigger'],
  target: toPart('target', values) as NewIntegration['target'],
})

type IntegrationFormProps = {
  id: string
  draftKey: string
  /** Without one, the form makes a new one. */
  integration?: Integration
  /** What a new one begins with. */
  initial?: { trigger?: TriggerName; target?: TargetName; lambda?: string }
  save(body: NewIntegration): Promise<Integration>
  onSaved(saved: Integration): void
}

/** When something happens, then something is done: a sentence whose parts are chosen from menus. */
export function IntegrationForm({ id, draftKey, integration, initial = {}, save, onSaved }: IntegrationFormProps) {
  const defaults: FormValues = {
    ...(initial.trigger && { 'trigger/kind': initial.trigger }),
    ...(initial.target && { 'target/kind': initial.target }),
    ...(initial.lambda && { 'target/lambdaId': initial.lambda }),
  }
  return (
    <FieldForm
      id={id}
      fields={fields.map((field) => (field.key in defaults ? { ...field, default: defaults[field.key] } : field))}
      before={integration && toValues(integration)}
      draftKey={draftKey}
      save={(_, values) => save(toBody(values))}
      onSaved={onSaved}
    />
  )
}
