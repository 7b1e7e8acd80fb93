import { Button, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Block, NewBlock } from '../api/schema'
import { codeInput } from '../fields/code-input'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { readCspNonce } from '../ui/csp-nonce'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import classes from './content.module.css'
import { KindInput } from './kind-input'

const FORM_ID = 'block-form'

const path = (id: string) => ({ path: { id } })

/** A block as it was written, and as the server shows it. */
const blockQuery = (id: string) =>
  queryOptions({
    queryKey: ['blocks', 'one', id],
    queryFn: async () => {
      const [written, displayed] = await Promise.all([
        fetchData(api.GET('/api/blocks/{id}', { params: { ...path(id), query: { raw: true } } })),
        fetchData(api.GET('/api/blocks/{id}', { params: path(id) })),
      ])
      return { written, displayed }
    },
  })

const fieldsOf = (contentType: Block['contentType']): FormField[] => [
  { key: 'name', title: 'Name', type: 'string', required: true, description: 'By which programs find it.' },
  { key: 'contentType', title: 'Kind', type: 'string', default: 'html', Input: KindInput },
  { key: 'description', title: 'Description', type: 'string' },
  {
    ...{ key: 'content', title: 'Content', type: 'text', required: true },
    Input: codeInput(contentType === 'html' ? 'html' : 'text'),
  },
]
// The editor keeps its text as long as its component is the same.
const htmlFields = fieldsOf('html')
const textFields = fieldsOf('content')

async function saveBlock(id: string | undefined, changes: FormValues, values: FormValues): Promise<Block> {
  const query = { raw: true }
  const change = Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? '']))
  const body = { content: '', ...values } as NewBlock
  const saved = await fetchData(
    id
      ? api.PUT('/api/blocks/{id}', { params: { ...path(id), query }, body: change })
      : api.POST('/api/blocks', { params: { query }, body }),
  )
  await queryClient.invalidateQueries({ queryKey: ['blocks'] })
  showNotice('Saved.')
  return saved
}

/** One block: its text, and what pages get of it. */
export function BlockScreen() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const { data, error } = useQuery(blockQuery(id))
  const remove = async () => {
    const question = { title: `Delete the block “${data?.written.name}”?`, action: 'Delete block' }
    if (!(await confirmAction(question))) return
    await fetchData(api.DELETE('/api/blocks/{id}', { params: path(id) }))
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

const PREVIEW_STYLE =
  'body { margin: 12px; font: 14px/1.5 system-ui, sans-serif; color: #111; background: #fff } pre { white-space: pre-wrap }'

/** The policy of the page also holds for frames in it, so styles need its nonce. */
function toDocument({ contentType, content }: Block): string {
  const nonce = readCspNonce()
  const body = contentType === 'html' ? content : `<pre>${escapeHtml(content)}</pre>`
  return `<!doctype html><html lang="en"><style nonce="${nonce}">${PREVIEW_STYLE}</style>${body}`
}
const escapeHtml = (text: string) => text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`)

function BlockPreview({ written, displayed }: { written: Block; displayed: Block }) {
  const isHtml = displayed.contentType === 'html'
  return (
    <section className={classes.preview} aria-label="Preview">
      <Text size="xs" c="dimmed">
        As pages get it, since it was saved.
        {isHtml && written.content !== displayed.content && ' What could run or cover the page is left out.'}
      </Text>
      <iframe className={classes.frame} title="Preview of the block" sandbox="" srcDoc={toDocument(displayed)} />
    </section>
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
