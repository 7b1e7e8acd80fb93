import { ActionIcon, Button, Checkbox, Group, Radio, Select, Stack, Text, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Field } from '../api/schema'
import { fieldKinds } from '../fields'
import type { FieldType } from '../fields/field-kind'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { accessPresets } from './access-presets'
import { BlueprintSelect } from './blueprint-select'
import classes from './new-blueprint.module.css'

type DraftField = { id: number; key: string; type: FieldType; required: boolean; target?: string }

const TYPE_OPTIONS = Object.entries(fieldKinds).map(([value, { label }]) => ({ value, label }))

/** Returns a key made of a name: small letters without accents, digits and dashes. */
const toKey = (name: string) =>
  name
    .normalize('NFD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, 63)

const toField = ({ key, type, required, target }: DraftField): Field => ({
  ...{ key, type },
  ...(required && { required }),
  ...(type === 'relation' && { target }),
})

/** Describes a new kind of entities: its name, its fields, and who may do what. */
export function NewBlueprint() {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [chosenKey, setChosenKey] = useState<string>()
  const [fields, setFields] = useState<DraftField[]>([{ id: 0, key: 'name', type: 'string', required: true }])
  const [access, setAccess] = useState('admins')
  const key = chosenKey ?? toKey(name)
  const create = useMutation({
    mutationFn: () =>
      fetchData(
        api.POST('/api/blueprints', {
          body: {
            ...{ key, name, fields: fields.map(toField) },
            permissions: accessPresets.find(({ value }) => value === access)?.rules ?? [],
          },
        }),
      ),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['blueprints'] })
      await navigate({ to: '/data/$blueprint', params: { blueprint: key } })
    },
  })
  const changeField = (id: number, change: Partial<DraftField>) =>
    setFields((all) => all.map((field) => (field.id === id ? { ...field, ...change } : field)))
  const addField = () =>
    setFields((all) => [
      ...all,
      { id: Math.max(-1, ...all.map(({ id }) => id)) + 1, key: '', type: 'string', required: false },
    ])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const errorOf = (path: string) => findFieldError(create.error, path)
  const isShownAtInput = ['name', 'key', 'fields'].some(errorOf)
  return (
    <Screen title="New blueprint">
      <form className={classes.form} onSubmit={submit} noValidate>
        <Stack>
          <TextInput
            label="Name"
            description="What the entities are, in the plural: Invoices, Guests, Orders."
            required
            autoFocus
            value={name}
            error={errorOf('name')}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Key"
            description="The name in addresses and code. It cannot be changed later."
            required
            value={key}
            error={errorOf('key')}
            onChange={(event) => setChosenKey(event.currentTarget.value)}
          />
          <fieldset className={classes.fields}>
            <legend>Fields</legend>
            {fields.map((field, index) => (
              <Group key={field.id} gap="xs" wrap="nowrap" align="flex-start">
                <TextInput
                  className={classes.grow}
                  aria-label={`Name of field ${index + 1}`}
                  placeholder="name"
                  value={field.key}
                  error={errorOf(`fields/${index}`)}
                  onChange={(event) => changeField(field.id, { key: event.currentTarget.value })}
                />
                <Select
                  w={170}
                  aria-label={`Type of field ${index + 1}`}
                  data={TYPE_OPTIONS}
                  value={field.type}
                  allowDeselect={false}
                  onChange={(type) => changeField(field.id, { type: type as FieldType })}
                />
                {field.type === 'relation' && (
                  <BlueprintSelect
                    aria-label={`Target of field ${index + 1}`}
                    value={field.target}
                    onChange={(target) => changeField(field.id, { target })}
                  />
                )}
                <Checkbox
                  mt={8}
                  label="Required"
                  checked={field.required}
                  onChange={(event) => changeField(field.id, { required: event.currentTarget.checked })}
                />
                <ActionIcon
                  mt={4}
                  variant="subtle"
                  color="gray"
                  aria-label={`Remove field ${index + 1}`}
                  onClick={() => setFields((all) => all.filter(({ id }) => id !== field.id))}
                >
                  <IconTrash size={16} />
                </ActionIcon>
              </Group>
            ))}
            <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={addField}>
              Add field
            </Button>
          </fieldset>
          <Radio.Group label="Who may do what" value={access} onChange={setAccess}>
            <Stack gap="xs" mt="xs">
              {accessPresets.map(({ value, label, description }) => (
                <Radio key={value} value={value} label={label} description={description} />
              ))}
            </Stack>
          </Radio.Group>
          <Text size="xs" c="dimmed">
            Fields and rules can be changed later, also when there are entities.
          </Text>
          {create.error && !isShownAtInput && <ProblemMessage error={create.error} />}
          <Group>
            <Button type="submit" loading={create.isPending}>
              Create blueprint
            </Button>
          </Group>
        </Stack>
      </form>
    </Screen>
  )
}
