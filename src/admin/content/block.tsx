import { Button } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Block, NewBlock } from '../api/schema'
import { codeInput } from '../fields/code-input'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { BlockKindInput } from './block-kind-input'
import { BlockPreview } from './block-preview'
import classes from './content.module.css'

const FORM_ID = 'block-form'

const toParams = (id: string) => ({ path: { id } })

/** A block as it was written, and as pages get it. */
const blockQuery = (id: string) =>
  queryOptions({
    queryKey: ['blocks', 'one', id],
    queryFn: async () => {
      const [written, displayed] = await Promise.all([
        fetchData(api.GET('/api/blocks/{id}', { params: { ...toParams(id), query: { raw: true } } })),
        fetchData(api.GET('/api/blocks/{id}', { params: toParams(id) })),
      ])
      return { written, displayed }
    },
  })

const toFields = (contentType: Block['contentType']): FormField[] => [
  { key: 'name', title: 'Name', type: 'string', required: true, description: 'Programs find the block by it.' },
  { key: 'contentType', title: 'Kind', type: 'string', default: 'html', Input: BlockKindInput },
  { key: 'description', title: 'Description', type: 'string' },
  {
    ...{ key: 'content', title: 'Content', type: 'text', required: true },
    Input: codeInput(contentType === 'html' ? 'html' : 'text'),
  },
]
// Fields keep their identity, because the editor loses its text when its component is another one.
const htmlFields = toFields('html')
const textFields = toFields('content')

async function saveBlock(id: string | undefined, changes: FormValues, values: FormValues): Promise<Block> {
  const query = { raw: true }
  const change = Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? '']))
  const body = { ...values, content: values.content ?? '' } as NewBlock
  const saved = await fetchData(
    id
      ? api.PUT('/api/blocks/{id}', { params: { ...toParams(id), query }, body: change })
      : api.POST('/api/blocks', { params: { query }, body }),
  )
  // The form takes what was saved before it sees the new state.
  void queryClient.invalidateQueries({ queryKey: ['blocks'] })
  showNotice('Saved.')
  return saved
}

/** One block: its text, and how pages show it. */
export function BlockScreen() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const { data, error } = useQuery(blockQuery(id))
  const remove = async () => {
    const question = { title: `Delete the block “${data?.written.name}”?`, action: 'Delete block' }
    if (!(await confirmAction(question))) return
    await fetchData(api.DELETE('/api/blocks/{id}', { params: toParams(id) }))
      .then(() => navigate({ to: '/content/blocks' }))
      .then(() => queryClient.invalidateQueries({ queryKey: ['blocks', 'list'] }))
      .catch(showProblem)
  }
  return (
    <Screen
      title={data?.written.name ?? 'Block'}
      request={{ method: 'GET', path: `/api/blocks/${id}` }}
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
      {data && (
        <div className={classes.split}>
          <div className={classes.editor}>
            <FieldForm
              key={data.written.contentType}
              id={FORM_ID}
              fields={data.written.contentType === 'html' ? htmlFields : textFields}
              before={data.written}
              draftKey={`block:${id}`}
              save={(changes, values) => saveBlock(id, changes, values)}
              onSaved={() => {}}
            />
          </div>
          <BlockPreview {...data} />
        </div>
      )}
    </Screen>
  )
}

/** A form for a new block. */
export function NewBlockScreen() {
  const navigate = useNavigate()
  return (
    <Screen
      title="New block"
      request={{ method: 'POST', path: '/api/blocks' }}
      actions={
        <Button type="submit" form={FORM_ID}>
          Create block
        </Button>
      }
    >
      <div className={classes.editor}>
        <FieldForm
          id={FORM_ID}
          fields={htmlFields}
          draftKey="block:"
          save={(_, values) => saveBlock(undefined, {}, values)}
          onSaved={({ _id }) => navigate({ to: '/content/blocks/$id', params: { id: _id }, replace: true })}
        />
      </div>
    </Screen>
  )
}
