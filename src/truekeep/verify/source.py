import re, hashlib
from typing import NamedTuple
EXT={"py":"python","pyi":"python","js":"js","ts":"js","tsx":"js","jsx":"js","mjs":"js","vue":"js","go":"go","rs":"rust","java":"java","c":"c","h":"c","rb":"ruby","toml":"toml","yaml":"yaml","yml":"yaml","json":"json","sh":"shell"}
def language_of(path):
    n=path.rsplit("/",1)[-1]
    if n in("Makefile",): return "make"
    return EXT.get(n.rsplit(".",1)[-1] if "." in n else "","")
class Definition(NamedTuple):
    name:str; scope:str; kind:str; line:int; end:int; start:int; stop:int
PYC=re.compile(rb'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*')
CC=re.compile(rb'/\*[\s\S]*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
T=bytes(10 if i==10 else 32 for i in range(256))
def clean(data,language):
    pat=PYC if language in("python","yaml","toml","shell","ruby","make") else CC
    def f(m):
        g=m[0]
        if g[:1]==b'#' or g[:2] in(b'//',b'/*') : return g.translate(T)
        if g[:3] in(b'"""',b"'''"):
            s=data.rfind(b"\n",0,m.start())+1
            if not data[s:m.start()].strip(): return g.translate(T)
        return g
    return pat.sub(f,data)
D={"python":re.compile(rb'^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)|^([ \t]*)(?:self\.)?(\w+)[ \t]*(?::[^=\n]+)?=(?!=)',re.M),
"js":re.compile(rb'^([ \t]*)(?:export[ \t]+)?(?:default[ \t]+)?(?:async[ \t]+)?(function\*?|class|const|let|var|interface|type|enum|namespace)[ \t]+(\w+)|^([ \t]+)(?:async |static |get |set |public |private |readonly )*(\w+)[ \t]*\([^\n;]*\)[^\n;]*\{',re.M),
"rust":re.compile(rb'^([ \t]*)(?:pub(?:\([^)]*\))?[ \t]+)?(?:async |unsafe |const |extern "C" )*(fn|struct|enum|trait|const|static|type|mod|macro_rules!)[ \t]+(\w+)|^([ \t]+)(?:pub(?:\([^)]*\))? )?([A-Za-z_]\w*)[ \t]*[:,({]',re.M),
"go":re.compile(rb'^()(func|type|var|const)[ \t]+(?:\([^)]*\)[ \t]*)?(\w+)|^(\t)(\w+)[ \t]+',re.M)}
G=re.compile(rb'^([ \t]*)(?:\w+[ \t]+)*(function|class|def|struct|enum|interface)[ \t]+(\w+)|^([ \t]*)"?([\w-]+)"?[ \t]*[:=]',re.M)
def _iter(c,l):
    for m in D.get(l,G).finditer(c):
        yield m, (m[3] or m[5]), (m[2] or b"var").decode(), len(m[1] if m[3] else m[4])
def names(c,l): return [n for _,n,_,_ in _iter(c,l)]
def definitions(c,l):
    lines=[0]
    out=[]; stack=[]
    items=list(_iter(c,l)); line=1; at=0
    for i,(m,n,k,ind) in enumerate(items):
        line+=c.count(b"\n",at,m.start()); at=m.start()
        while stack and stack[-1][0]>=ind: stack.pop()
        scope=".".join(s for _,s in stack)
        nxt=next((x[0].start() for x in items[i+1:i+60] if x[3]<=ind),len(c))
        kind={"def":"function","fn":"function","func":"function"}.get(k,k)
        if kind!="var": stack.append((ind,n.decode("utf8","replace")))
        out.append(Definition(n.decode("utf8","replace"),scope,kind,line,line+c.count(b"\n",m.start(),nxt),m.start(),nxt))
    return out
def body_digest(c,d): return hashlib.blake2b(re.sub(rb"\s+",b"",c[d.start:d.stop]),digest_size=8).hexdigest()
