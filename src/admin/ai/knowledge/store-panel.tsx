import { Button, Stack, Tabs, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { SidePanel } from '../../ui/side-panel'
import { FileList } from './file-list'
import { refreshKnowledge, storesQuery } from './knowledge-queries'
import { KnowledgeTest } from './knowledge-test'
import { useStoreNames } from './store-names'
import { UploadForm } from './upload-form'

/** Removes files of a store, or all of them, and says how many. */
async function clearStore(source: string, vectorStoreId: string, fileIds?: string[]) {
  const params = { path: { sourceId: source } }
  const body = { vectorStoreId, ...(fileIds && { fileIds }) }
  const { message } = await fetchData(api.POST('/api/ai/sources/{sourceId}/storage/clear', { params, body }))
  await refreshKnowledge()
  showNotice(message)
}

/** The files of one store: adding, removing, and a search to try it. */
export function StorePanel() {
  const navigate = useNavigate()
  const { source = '', store: id = '' } = useParams({ strict: false })
  const { file } = useSearch({ strict: false }) as { file?: string }
  const { data: stores, error } = useQuery(storesQuery)
  const names = useStoreNames()
  const store = stores?.find(({ _id }) => _id === id)
  const title = store ? `${names.nameAgent(store.integration)} · ${names.nameSubject(store)}` : 'Knowledge'
  const remove = (fileIds?: string[]) => clearStore(source, id, fileIds).catch(showProblem)
  const removeFile = async (fileId: string, name: string) => {
    const question = { title: `Remove “${name}”?`, text: 'The agent no longer answers from it.', action: 'Remove file' }
    if (await confirmAction(question)) await remove([fileId])
  }
  const removeAll = async () => {
    const typedName = names.nameAgent(store!.integration)
    const text = 'The agent no longer answers from them, and they cannot be brought back.'
    if (await confirmAction({ title: 'Remove all files?', text, action: 'Remove all files', typedName })) await remove()
  }
  return (
    <SidePanel
      title={title}
      onClose={() => navigate({ to: '/ai/knowledge' })}
      footer={
        !!store?.files && (
          <Button variant="subtle" color="red" ml="auto" leftSection={<IconTrash size={14} />} onClick={removeAll}>
            Remove all files
          </Button>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {stores && !store && <Text c="dimmed">These files no longer exist.</Text>}
      {store && (
        <Tabs defaultValue="files" keepMounted={false}>
          <Tabs.List mb="sm">
            <Tabs.Tab value="files">Files</Tabs.Tab>
            <Tabs.Tab value="test">Test the search</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="files">
            <Stack gap="md">
              <UploadForm store={store} />
              <FileList store={store} cited={file} onRemove={removeFile} />
            </Stack>
          </Tabs.Panel>
          <Tabs.Panel value="test">
            <KnowledgeTest agent={store.integration} />
          </Tabs.Panel>
        </Tabs>
      )}
    </SidePanel>
  )
}
