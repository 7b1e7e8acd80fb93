import { Button } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Component, NewComponent } from '../api/schema'
import { codeInput } from '../fields/code-input'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { ComponentBuild } from './component-build'
import classes from './content.module.css'

const FORM_ID = 'component-form'

const componentQuery = (id: string) =>
  queryOptions({
    queryKey: ['components', 'one', id],
    queryFn: () => fetchData(api.GET('/api/components/{id}', { params: { path: { id } } })),
  })

const EXAMPLE = `export const Hello = ({ name }: { name: string }) => <b className="hello">Hello {name}</b>

<style>
.hello { color: teal }
</style>
`

const fields: FormField[] = [
  {
    ...{ key: 'identifier', title: 'Identifier', type: 'string', required: true },
    description: 'The name in addresses: letters, digits, dots, hyphens and underscores.',
  },
  { key: 'componentName', title: 'Name', type: 'string', description: 'The name in code. Default: the identifier.' },
  { key: 'description', title: 'Description', type: 'string' },
  {
    ...{ key: 'requiredProps', title: 'Required props', type: 'string', multi: true },
    description: 'A name, or a name and a type, such as name: string.',
  },
  {
    ...{ key: 'content', title: 'Code', type: 'text', required: true, default: EXAMPLE, Input: codeInput('tsx') },
    description: 'A module in TypeScript or JSX. The content of <style> becomes the style sheet.',
  },
]

const toFormValues = (component: Component): FormValues => ({
  ...component,
  requiredProps: component.requiredProps.map((prop) =>
    typeof prop === 'string' ? prop : `${prop.prop}: ${prop.type}`,
  ),
})

/** Returns a prop as it was typed, `name` or `name: type`. */
function parseProp(text: string) {
  const [, prop, type] = /^([^:]+):\s*(.+)$/.exec(text) ?? []
  return prop && type ? { prop: prop.trim(), type: type.trim() } : text.trim()
}

async function saveComponent(id: string | undefined, values: FormValues): Promise<Component> {
  const { requiredProps = [], ...rest } = values
  const sent = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== null))
  const body = {
    ...sent,
    content: sent.content ?? '',
    requiredProps: (requiredProps as string[]).map(parseProp),
  } as NewComponent
  const saved = await fetchData(
    id ? api.PUT('/api/components/{id}', { params: { path: { id } }, body }) : api.POST('/api/components', { body }),
  )
  // The form takes what was saved before it sees the new state.
  void queryClient.invalidateQueries({ queryKey: ['components'] })
  showNotice('Saved and compiled.')
  return saved
}

/** One component: its code, and what the server made of it. */
export function ComponentScreen() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const { data: component, error } = useQuery(componentQuery(id))
  const remove = async () => {
    const text = 'Pages that have loaded it keep it until they are loaded again.'
    const question = { title: `Delete the component “${component?.identifier}”?`, text, action: 'Delete component' }
    if (!(await confirmAction(question))) return
    await fetchData(api.DELETE('/api/components/{id}', { params: { path: { id } } }))
      .then(() => navigate({ to: '/content/components' }))
      .then(() => queryClient.invalidateQueries({ queryKey: ['components', 'list'] }))
      .catch(showProblem)
  }
  return (
    <Screen
      title={component?.identifier ?? 'Component'}
      request={{ method: 'GET', path: `/api/components/${component?.identifier ?? id}` }}
      actions={
        <>
          <Button variant="subtle" color="red" leftSection={<IconTrash size={14} />} onClick={remove}>
            Delete
          </Button>
          <Button type="submit" form={FORM_ID}>
            Save
          </Button>
        </>
      }
    >
      {error && <ProblemMessage error={error} />}
      {component && (
        <div className={classes.split}>
          <div className={classes.editor}>
            <FieldForm
              id={FORM_ID}
              fields={fields}
              before={toFormValues(component)}
              draftKey={`component:${id}`}
              save={(_, values) => saveComponent(id, values)}
              onSaved={() => {}}
            />
          </div>
          <ComponentBuild component={component} />
        </div>
      )}
    </Screen>
  )
}

/** A form for a new component. */
export function NewComponentScreen() {
  const navigate = useNavigate()
  return (
    <Screen
      title="New component"
      request={{ method: 'POST', path: '/api/components' }}
      actions={
        <Button type="submit" form={FORM_ID}>
          Create component
        </Button>
      }
    >
      <div className={classes.editor}>
        <FieldForm
          id={FORM_ID}
          fields={fields}
          draftKey="component:"
          save={(_, values) => saveComponent(undefined, values)}
          onSaved={({ _id }) => navigate({ to: '/content/components/$id', params: { id: _id }, replace: true })}
        />
      </div>
    </Screen>
  )
}
