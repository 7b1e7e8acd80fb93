import { Anchor, Button, Checkbox, Stack, Text, Textarea, TextInput, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { api } from '../api/client'
import { removeDraft } from '../api/drafts'
import { blueprintsQuery, queryClient } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { entityCountQuery } from '../data/entity-queries'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import classes from './design.module.css'
import { fieldIndexesQuery } from './design-queries'
import { useDesign } from './design-state'

const EVENTS = [
  ['create', 'When an entity is created'],
  ['update', 'When an entity is changed'],
  ['delete', 'When an entity is deleted'],
] as const

/** What a blueprint is called, which events it records, and how it is deleted. */
export function DesignSettings() {
  const { before, draft, update, flaws } = useDesign()
  const errorAt = (path: string) => flaws.find((flaw) => flaw.path === path)?.message
  return (
    <Stack className={classes.column} gap="lg">
      <TextInput
        label="Name"
        description="Plural name."
        required
        dir="auto"
        value={draft.name}
        error={errorAt('/name')}
        onChange={({ currentTarget: { value: name } }) => update((now) => ({ ...now, name }))}
      />
      <Textarea
        label="Description"
        description="For people, for generated types, and for agents that choose where to look."
        autosize
        minRows={2}
        dir="auto"
        value={draft.description}
        error={errorAt('/description')}
        onChange={({ currentTarget: { value: description } }) => update((now) => ({ ...now, description }))}
      />
      <Checkbox.Group
        label="Record an event"
        description="Integrations and plugins can listen to events."
        value={EVENTS.map(([event]) => event).filter((event) => draft.dispatchers[event])}
        onChange={(chosen) =>
          update((now) => ({ ...now, dispatchers: Object.fromEntries(chosen.map((event) => [event, true])) }))
        }
      >
        <Stack gap="xs" mt="xs">
          {EVENTS.map(([event, label]) => (
            <Checkbox key={event} value={event} label={label} />
          ))}
        </Stack>
      </Checkbox.Group>
      <Checkbox
        label="Keep a history of entities"
        description="Records each change with its author and time, and earlier states. Switching it off deletes the history."
        checked={draft.history !== false}
        onChange={({ currentTarget: { checked } }) =>
          update((now) => ({ ...now, history: checked && (before.history || true) }))
        }
      />
      <Text size="sm" c="dimmed">
        The key is <code>{before.key}</code>, which cannot be changed. Created <RelativeTime time={before.created} />,
        changed <RelativeTime time={before.updated} />.
      </Text>
      <BlueprintDeletion blueprint={before} />
    </Stack>
  )
}

/** Returns the relations of other blueprints that point to this one. */
const listRelationsTo = (key: string, blueprints: readonly Blueprint[]) =>
  blueprints
    .filter((each) => each.key !== key)
    .flatMap((each) => each.fields.filter(({ target }) => target === key).map((field) => ({ blueprint: each, field })))

/** Returns what is deleted with a blueprint; without a count, it may have any number of entities. */
function describeDeletion(count: number | undefined): string {
  if (count === 0) return 'The blueprint has no entities.'
  return `The blueprint is deleted with all ${count === undefined ? '' : `${count.toLocaleString()} `}entities.`
}

function BlueprintDeletion({ blueprint: { key, name } }: { blueprint: Blueprint }) {
  const navigate = useNavigate()
  const { data: count } = useQuery(entityCountQuery(key, {}))
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  const pointing = listRelationsTo(key, blueprints)
  const remove = useMutation({
    mutationFn: () => api.DELETE('/api/blueprints/{key}', { params: { path: { key }, query: { force: true } } }),
    // Nobody asks for the indexes of a blueprint that may be gone already.
    onMutate: async () => {
      await queryClient.cancelQueries({ queryKey: ['blueprints', key] })
      queryClient.setQueryData(fieldIndexesQuery(key).queryKey, [])
    },
    onError: () => queryClient.invalidateQueries({ queryKey: ['blueprints', key] }),
    onSuccess: async () => {
      removeDraft(`design:${key}`)
      showNotice(`The blueprint “${name}” is deleted.`)
      // The next page counts the entities of each blueprint that it knows.
      queryClient.setQueryData(blueprintsQuery.queryKey, (known) => known?.filter((one) => one.key !== key))
      await navigate({ to: '/data' })
      // What is still on the page until the next one is drawn would ask for it again.
      queryClient.removeQueries({ queryKey: ['blueprints', key], type: 'inactive' })
      queryClient.removeQueries({ queryKey: ['entities', key], type: 'inactive' })
      await queryClient.invalidateQueries({
        queryKey: ['blueprints'],
        predicate: ({ queryKey }) => queryKey[1] !== key,
      })
    },
  })
  const confirmAndDelete = async () => {
    const isConfirmed = await confirmAction({
      title: `Delete the blueprint “${name}”?`,
      text: `${describeDeletion(count)} This cannot be undone.`,
      action: 'Delete blueprint',
      typedName: key,
    })
    if (isConfirmed) remove.mutate()
  }
  return (
    <section aria-labelledby="deletion">
      <Title order={2} id="deletion" fz="md">
        Delete
      </Title>
      <Text size="sm" c="dimmed" my={4}>
        {describeDeletion(count)}
      </Text>
      {pointing.length > 0 && (
        <Text size="sm" c="dimmed" my={4}>
          These relations point to it. Each says what happens to its entities:{' '}
          {pointing.map(({ blueprint, field }, n) => (
            <span key={`${blueprint.key} ${field.key}`}>
              {n > 0 && ', '}
              <Anchor
                component={Link}
                to="/data/$blueprint/all/design"
                params={{ blueprint: blueprint.key } as never}
                size="sm"
              >
                <bdi>{blueprint.name}</bdi>.{field.key}
              </Anchor>
            </span>
          ))}
          .
        </Text>
      )}
      {remove.error && <ProblemMessage error={remove.error} />}
      <Button color="red" variant="light" onClick={confirmAndDelete} loading={remove.isPending}>
        Delete blueprint
      </Button>
    </section>
  )
}
