import { code, created, credentialId, credentialParts, id, later, otherId, times } from './stand-ins'

const workspace = { _id: otherId, name: 'Analytical Engines', roles: ['admin'], labels: ['customer'] }
const user = {
  ...{ _id: id, username: 'ada', email: 'ada@example.com', name: 'Ada', firstName: 'Ada', lastName: 'Lovelace' },
  ...{ fullName: 'Ada Lovelace', profileImage: null, birthDate: null, phone: null, roles: ['user'] },
  ...{ metadata: {}, workspace, created },
}
const password = 'correct horse battery'
const signedIn = { payload: { token: 'eyJhbGciOi…', refreshToken: 'rt_…', expiresIn: 900, user, workspace } }
const apiToken = {
  ...{ _id: id, nickname: 'Nightly report', tokenPrefix: 'atl_5f0c9e3b', scopes: ['entities:read'] },
  ...{ expiresAt: null, lastUsedAt: null, workspace: null, created },
}
const credential = { id: credentialId, rawId: credentialId, type: 'public-key', clientExtensionResults: {} }
const { clientDataJSON, attestationObject, authenticatorData, signature } = credentialParts
const passkey = {
  ...{ _id: id, name: 'Laptop', host: 'app.example.com', transports: ['internal'], backedUp: true },
  ...{ created, lastUsedAt: null },
}
const invite = { email: 'grace@example.com', roles: ['member'] }
const member = { user: id, roles: ['admin'], created, fullName: 'Ada Lovelace', email: 'ada@example.com' }
const ownWorkspace = {
  ...{ _id: otherId, name: 'Analytical Engines', logo: null, labels: ['customer'] },
  ...{ isPrivilegedUser: true, ...times },
}
const workspaceDetails = { ...ownWorkspace, members: [member], invites: [] }
const mailText = 'Hello,\n\nconfirm your e-mail address: {{link}}'

/** Examples of accounts, mails and workspaces, by the names of their schemas. */
export const accountExamples: Record<string, unknown> = {
  SignIn: { username: 'ada', password, authType: 'oauth' },
  SignUp: { username: 'grace', password, email: 'grace@example.com', authType: 'oauth' },
  SetUp: { username: 'grace', password, token: 'gLdaA1hf297As62…' },
  LinkSignIn: { token: 'B5SdKpv8bN-MT3bj…' },
  EmailCode: { request: 'mQ0dYx7b4Vw…', code },
  EmailLink: { token: 'h2vP0sN6c1E…' },
  RequestedEmailSignIn: { request: 'mQ0dYx7b4Vw…' },
  SignInMethods: { email: true, providers: ['google'] },
  SignedIn: signedIn,
  RefreshRequest: { refreshToken: 'rt_…' },
  RefreshedTokens: signedIn,
  RefreshedCookie: { payload: { user, workspace } },
  User: user,
  UserSummary: { ...user, internalMetadata: {} },
  UserStats: {
    ...{ total: 412, roles: { admin: 2, user: 410 } },
    registered: { lastDay: 3, lastWeek: 17, lastMonth: 61 },
    active: { lastDay: 88, lastWeek: 205, lastMonth: 340 },
  },
  UserSignInState: {
    ...{ emailVerified: true, pendingEmail: null, password: true, secondFactor: false, passkeys: 1 },
    ...{ providers: ['google'], sessions: 2, apiTokens: 0, lastActive: created },
  },
  ListRolesResult: ['admin', 'editor'],
  Me: { ...user, isPrivileged: false, emailVerified: true, pendingEmail: null },
  ProfileChange: { firstName: 'Ada', phone: '+44 20 7946 0000' },
  Session: {
    ...{ _id: id, kind: 'cookie', userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0' },
    ...{ address: '192.0.2.1', created, used: created, expires: later, current: true },
  },
  NewUser: { username: 'grace', password, roles: ['user'] },
  UserChange: { roles: ['user', 'editor'] },
  NewApiToken: { nickname: 'Nightly report', scopes: ['entities:read'] },
  ApiToken: apiToken,
  IssuedApiToken: { token: 'atl_5f0c9e3b7a02…', apiToken },
  EmailVerification: { email: 'ada@example.com', code },
  RevertToken: { token: 'k3Vt…' },
  ForgottenPassword: { email: 'ada@example.com' },
  PasswordReset: { email: 'ada@example.com', code, password },
  TotpCode: { code: '4920…' },
  Proof: { currentPassword: password },
  SecondFactor: { enabled: true, recoveryCodes: 10 },
  NewSecondFactor: {
    secret: '7JWBNTBNHA7B53OL…',
    uri: 'otpauth://totp/Example:ada?secret=7JWBNTBNHA7B53OL…&issuer=Example&algorithm=SHA1&digits=6&period=30',
  },
  RecoveryCodes: { recoveryCodes: ['226x-6smd-elav-zdor', 'twyd-b345-ghk4-yu2r'] },
  Passkey: passkey,
  NewPasskey: { name: 'Laptop', credential: { ...credential, response: { clientDataJSON, attestationObject } } },
  PasskeyName: { name: 'Phone' },
  PasskeyRegistrationOptions: {
    ...{ challenge: 'NlAH7O_ZI9ICOmxR…', rp: { name: 'Example', id: 'app.example.com' } },
    user: { id: 'MDE5YTdjN2U…', name: 'ada', displayName: 'Ada Lovelace' },
    pubKeyCredParams: [{ alg: -7, type: 'public-key' }],
    ...{ timeout: 300_000, attestation: 'none', excludeCredentials: [] },
    authenticatorSelection: { residentKey: 'required', userVerification: 'required', requireResidentKey: true },
    extensions: { credProps: true },
  },
  PasskeySignInStart: {},
  PasskeySignInOptions: {
    ...{ rpId: 'app.example.com', challenge: 'nOVsRGClf35ifnhP…', timeout: 300_000, userVerification: 'required' },
  },
  PasskeySignIn: {
    authType: 'oauth',
    credential: { ...credential, response: { clientDataJSON, authenticatorData, signature } },
  },
  ListAuthProvidersResult: ['google', 'github'],
  RedirectToken: { rt: 'k3Vt…', authType: 'oauth' },
  Identity: { _id: id, provider: 'google', email: 'ada@example.com', created, lastUsedAt: created },
  NewIdentity: { provider: 'google', returnUrl: 'https://app.example.com/profile' },
  Redirect: { url: 'https://accounts.google.com/o/oauth2/v2/auth?response_type=code&client_id=…' },
  PutUserSecretInput: { taxNumber: 'AB 12 34 56 C' },
  GetUserSecretResult: { taxNumber: 'AB 12 34 56 C' },
  PutUserSecretResult: {},
  PutWorkspaceSecretInput: { accountNumber: 'GB33 BUKB 2020 1555 5555 55' },
  GetWorkspaceSecretResult: { accountNumber: 'GB33 BUKB 2020 1555 5555 55' },
  PutWorkspaceSecretResult: {},

  Mail: {
    ...{ _id: id, to: 'ada@example.com', template: 'verification', user: id, state: 'sent' },
    ...{ subject: 'Confirm your e-mail address', text: null, html: null, error: null, created, sent: created },
  },
  MailTemplate: {
    ...{ name: 'verification', placeholders: ['product', 'link', 'code'] },
    standard: { subject: 'Confirm your e-mail address', text: mailText, html: null, link: null },
    custom: { subject: 'Welcome to {{product}}' },
  },
  MailTemplateChange: { subject: 'Welcome to {{product}}' },
  RenderedMail: {
    subject: 'Welcome to app.example.com',
    text: 'Hello,\n\nconfirm your e-mail address: https://app.example.com/confirm#sample-token',
    html: '<p>Hello,</p>\n<p>confirm your e-mail address: https://app.example.com/confirm#sample-token</p>',
  },

  NewWorkspace: { name: 'Analytical Engines' },
  Workspace: ownWorkspace,
  WorkspaceDetails: workspaceDetails,
  WorkspaceSummary: {
    ...{ _id: otherId, name: 'Analytical Engines', logo: null, labels: ['customer'], tenant: 'acme' },
  },
  WorkspaceChange: { name: 'Analytical Engines Ltd', invites: [invite] },
  WorkspaceRemoved: { success: true, entities: 12 },
  ActivatedWorkspace: { ...ownWorkspace, roles: ['admin'] },
  Member: member,
  NewMember: { userId: id, roles: ['member'] },
  MemberAdded: { message: 'The user was added to the workspace.', workspace: workspaceDetails },
  MemberChange: { roles: ['admin'] },
  MemberChanged: {
    ...{ message: 'The roles were updated.', updatedMember: { user: id, roles: ['admin'] }, workspaceId: otherId },
  },
  MemberRemoved: { message: 'The user was removed from the workspace.', removedMemberId: id, userId: id },
  NewInvite: invite,
  Invite: { _id: id, name: null, ...invite, created },
  Invitation: {
    _id: id,
    workspace: { _id: otherId, name: 'Analytical Engines', logo: null },
    roles: ['member'],
    created,
  },
  InvitationAnswer: { workspace: otherId, kind: 'accept' },
}
