import { created, id, otherId, times } from './stand-ins'

const messages = [{ role: 'user', content: 'What is left to do?' }]
const newAgent = { name: 'Helper', description: 'Answers questions', systemPrompt: 'Answer briefly.' }
const completion = {
  ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_769_860_800, model: 'gpt-4o-mini' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Write the notes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 4, total_tokens: 16 },
}
const chunk = {
  ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_769_860_800, model: 'gpt-4o-mini' },
  choices: [{ index: 0, delta: { role: 'assistant', content: 'Write the notes.' }, finish_reason: null }],
}
const stream = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`
const model = { id: 'Helper', object: 'model', created: 1_769_860_800, owned_by: 'atoll' }
const vectorStore = { _id: id, scope: 'user', subjectId: otherId, externalId: 'vs_1', created }
const draft = { messages: [{ role: 'user', content: 'A shop for books' }], create: false }
const draftedBlueprint = { key: 'books', name: 'Books', fields: [{ key: 'title', type: 'string', required: true }] }

/** The operations that answer with a completion in the format of OpenAI’s API. */
const COMPLETIONS = [
  ...['ChatWithAgent', 'StreamAgentChat', 'CreateCompletion', 'CreateThreadCompletion', 'DraftWithSource'],
  ...['CreateSourceCompletion', 'DraftPages', 'DraftIntegrations'],
]

/** Examples of AI, by the names of their schemas. */
export const aiExamples: Record<string, unknown> = {
  ...Object.fromEntries(COMPLETIONS.map((operation) => [`${operation}Result`, completion])),
  ...Object.fromEntries(COMPLETIONS.map((operation) => [`${operation}Result text/event-stream`, stream])),
  'CreateChatCompletionResult text/event-stream': stream,
  NewThread: { integration: id, title: 'Plans for the week' },
  Thread: {
    ...{ _id: id, integration: otherId, title: 'Plans for the week', messageSummaries: [], user: id, workspace: null },
    messages: [{ role: 'user', content: 'What is left to do?', timestamp: created }],
    ...times,
  },
  NewAgent: newAgent,
  AgentChange: { systemPrompt: 'You know our pumps.', temperature: null },
  Agent: {
    ...{ _id: id, ...newAgent, sourceId: otherId, model: 'gpt-4o-mini', tools: ['read'], active: true },
    ...{ roles: [], workspaceRoles: [], ...times },
  },
  KnowledgeSearch: { question: 'How often does the pump need oil?' },
  KnowledgeExcerpt: {
    ...{ fileId: id, fileName: 'pumps.md', chunk: 3, text: 'Oil the pump every 500 hours.', score: 0.83 },
  },
  AgentChatRequest: { messages },
  CompletionRequest: { messages },
  ChatCompletionRequest: { model: 'Librarian', messages },
  ChatCompletion: completion,
  AiModel: model,
  AiModelList: { object: 'list', data: [model] },
  EmbeddingRequest: { model: 'Librarian', input: 'What is a novel?' },
  EmbeddingList: {
    ...{ object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.0123, -0.0456, 0.0789] }] },
    ...{ model: 'text-embedding-3-small', usage: { prompt_tokens: 5, total_tokens: 5 } },
  },
  DraftRequest: draft,
  BlueprintDraftRequest: { prompt: 'A shop for books' },
  DraftedBlueprints: {
    blueprints: [draftedBlueprint],
    usage: { prompt_tokens: 1791, completion_tokens: 129, total_tokens: 1920 },
  },
  ListAiUsageResultItem: {
    ...{ _id: id, created, kind: 'completion', integration: otherId, source: 'Model server', model: 'gpt-4o-mini' },
    ...{ user: id, workspace: null, thread: null, promptTokens: 12, completionTokens: 4, cost: 0.0000042 },
    ...{ estimated: false, status: 'completed', durationMs: 640 },
  },
  NewVectorStore: { integrationId: id, scope: 'user', subjectId: otherId },
  VectorStoreCreated: { success: true, message: 'The vector store was created.', vectorStore },
  StoredVectorStore: {
    ...{ ...vectorStore, integration: id, embeddingModel: 'text-embedding-3-small', files: 2, chunks: 40 },
    expires: null,
  },
  VectorStoreUpload: {
    vectorStoreId: id,
    content: '# Opening hours\n\nMonday to Friday, 9 to 17',
    fileName: 'hours.md',
  },
  VectorStoreUploaded: { success: true, message: 'The file was added.', fileId: id, vectorStoreId: otherId },
  VectorStoreClear: { vectorStoreId: id },
  VectorStoreCleared: { success: true, message: '2 files were cleared.', clearedCount: 2, vectorStoreId: id },
  KnowledgeFile: { _id: id, fileName: 'hours.md', metadata: {}, user: otherId, chunks: 1, created },
  CallMcpInput: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  CallMcpResult: {
    ...{ jsonrpc: '2.0', id: 1 },
    result: {
      tools: [
        {
          ...{ name: 'find_todos', description: 'Finds entities of "To-dos".' },
          inputSchema: { type: 'object', properties: { query: { type: 'object' } }, required: [] },
        },
      ],
    },
  },
}
