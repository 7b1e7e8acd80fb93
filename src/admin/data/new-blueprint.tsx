import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem, findFieldError } from '../api/problem'
import { queryClient } from '../api/queries'
import { type DraftField, newFieldId, toDefinition, toDraft } from '../design/design-draft'
import { locateFlaws } from '../design/design-state'
import { FieldList } from '../design/field-list'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { accessPresets } from './access-presets'
import { toBlueprintKey } from './blueprint-key'
import classes from './new-blueprint.module.css'

/** A form for a new blueprint: its name, its fields, and who may do what. */
export function NewBlueprint() {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [chosenKey, setChosenKey] = useState<string>()
  const [fields, setFields] = useState<DraftField[]>(() => [
    { id: newFieldId(), key: 'name', type: 'string', required: true },
  ])
  const [access, setAccess] = useState('admins')
  const key = chosenKey ?? toBlueprintKey(name)
  const rules = accessPresets.find(({ value }) => value === access)?.rules ?? []
  const draft = { ...toDraft({ name, permissions: rules }, []), fields }
  const create = useMutation({
    mutationFn: () => fetchData(api.POST('/api/blueprints', { body: { key, ...toDefinition(draft) } })),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['blueprints'] })
      await navigate({ to: '/data/$blueprint', params: { blueprint: key } })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!create.isPending) create.mutate()
  }
  const { error } = create
  const flaws = error instanceof ApiProblem ? locateFlaws(error.fieldErrors, draft) : []
  const isShownAtInput = ['name', 'key', 'fields'].some((path) => findFieldError(error, path))
  return (
    <Screen title="New blueprint">
      <form className={classes.form} onSubmit={submit} noValidate>
        <Stack>
          <TextInput
            label="Name"
            description="Plural name, such as Invoices, Guests or Orders."
            required
            autoFocus
            dir="auto"
            value={name}
            error={findFieldError(error, 'name')}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Key"
            description="The name in addresses and code. It cannot be changed later."
            required
            value={key}
            error={findFieldError(error, 'key')}
            onChange={(event) => setChosenKey(event.currentTarget.value)}
          />
          <fieldset className={classes.fields}>
            <legend>Fields</legend>
            <FieldList fields={fields} updateFields={setFields} flaws={flaws} isInline />
          </fieldset>
          <Radio.Group label="Access rules" value={access} onChange={setAccess}>
            <Stack gap="xs" mt="xs">
              {accessPresets.map(({ value, label, description }) => (
                <Radio key={value} value={value} label={label} description={description} />
              ))}
            </Stack>
          </Radio.Group>
          <Text size="xs" c="dimmed">
            Fields and rules can be changed later, also when there are entities.
          </Text>
          {error && !isShownAtInput && <ProblemMessage error={error} />}
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
