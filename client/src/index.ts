export type { AtollProfile, AtollSession, MailProof, NewAccount, ProfileChange, Proof, SignInInit } from './accounts'
export type { AtollAgent, AtollThread, ChatMessage, ChatPart, ChatRequest, ChatUsage, ClientTool } from './ai'
export type {
  AtollEvent,
  AtollLambda,
  EventFilters,
  LambdaResult,
  LambdaRun,
  WebhookCall,
} from './automation'
export type { EntityChange } from './changes'
export type { AxesChart, ChartQuery, PieChart } from './charts'
export { type Client, createClient } from './client'
export type { Blueprints, Entity } from './entity'
export { AtollError } from './errors'
export type { AtollFile, FileUrlOptions, LocalFile, UploadInit } from './files'
export type { AtollPasskey } from './passkeys'
export type {
  AtollCoupon,
  AtollInvoice,
  AtollPlan,
  AtollSubscription,
  CheckoutRequest,
} from './payments'
export type { TokenStorage } from './platform'
export type {
  EntityResult,
  EntityVersion,
  EntityView,
  Filters,
  Kind,
  Kinds,
  Operation,
  Paths,
  Query,
  Report,
  Result,
  Selectable,
} from './queries'
export type { ActiveWorkspace, AtollUser, SessionListener, SignedIn } from './session'
export type { AtollIdentity, SignInMethods } from './sign-in-methods'
export type { UploadProgress } from './streams'
export type { Init, Options } from './transport'
export { VERSION, type Versions } from './version'
export type {
  AtollInvitation,
  AtollInvite,
  AtollMember,
  AtollWorkspace,
  Page,
  WorkspaceDetails,
  WorkspaceInput,
} from './workspaces'
