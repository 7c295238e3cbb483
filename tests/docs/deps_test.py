"""The DEPS lists of the CMakeLists.txt files are the architecture: a target names every target whose headers its own files
include, none names one above it, and pure folders stand on pure ones. Neither folders nor units (a .h and its .cc) include each other
in a circle."""

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPS = {"proto": (), "common": ("proto",), "collectives": ("common",), "sidecar": ("common", "proto"),
        "operator": ("common", "proto")}  # the others that each top folder may use
BASE_OF_COLLECTIVES = {"common/sync", "common/hex", "common/fields", "common/ring_key", "common/worker_link", "common/job", "common/bench", "common/option_bounds", "common/plain_text"}  # it is built without operator and sidecar
PURE = {"common/fields", "common/failure_policy", "common/fnv", "common/hex", "common/lines", "common/option_bounds", "common/plain_text", "common/worker_link", "common/membership", "common/wall_time", "operator/api", "operator/kueue", "operator/planner", "operator/provisioning",
        "operator/scheduler"}
PURE_TARGETS = {"ringmaster::job_facts"}  # of a folder that is not pure as a whole
HANDWRITTEN = {  # targets that are made without rm_library: where their headers are
    "ringmaster::headers": "collectives/include/ringmaster/",
    "ringmaster::collectives": "collectives/include/ringmaster/",
    "ringmaster_collectives": "collectives/include/ringmaster/",
    "ringmaster::proto": "proto/",
}


Target = collections.namedtuple("Target", "name folder kind sources deps")


def cmake_files():
    files = []
    for top in [*TOPS, "tests", "examples"]:
        files += sorted((ROOT / top).rglob("CMakeLists.txt"))
    return files


def lists_of(words):
    """SRCS a b DEPS c: {"SRCS": [a, b], "DEPS": [c]}."""
    lists, key = collections.defaultdict(list), None
    for word in words:
        if word.isupper() and re.fullmatch(r"[A-Z_]+", word):
            key = word
        elif key:
            lists[key].append(word)
    return lists


def read_targets():
    targets = {}
    for file in cmake_files():
        folder = str(file.parent.relative_to(ROOT))
        text = re.sub(r"#.*", "", file.read_text())
        variables = {name: value.split() for name, value in re.findall(r"\bset\((\w+) ([\w. ]+)\)", text)}
        for kind, name, rest in re.findall(r"\b(rm_library|rm_binary|rm_test)\(\s*([\w:-]+)([^()]*)\)", text):
            rest = re.sub(r"\$\{(\w+)\}", lambda found: " ".join(variables.get(found[1], ())), rest)
            lists = lists_of(rest.split())
            sources = [folder + "/" + source for source in lists["SRCS"]]
            targets[name] = Target(name, folder, kind, sources, lists["DEPS"] + lists["PRIVATE_DEPS"])
        for name, source in re.findall(r"\badd_library\((\w+) SHARED (\S+)\)", text):
            deps = re.search(r"\btarget_link_libraries\(%s PRIVATE([^()]*)\)" % name, text)[1]
            targets[name] = Target(name, folder, "rm_library", [folder + "/" + source], re.findall(r"ringmaster::\w+", deps))
    return targets


TARGETS = read_targets()


def includes_of(name):
    """Of a file of ours, as paths from the root."""
    file, found = ROOT / name, []
    if not file.exists():
        return found  # generated
    for quoted in re.findall(r'^\s*#include [<"]([^>"]+)[>"]', file.read_text(), re.M):
        if quoted.startswith("ringmaster/"):
            found.append("collectives/include/" + quoted)
        elif re.fullmatch(r"(operator|rendezvous)(\.grpc)?\.pb\.h", quoted):
            found.append("proto/" + quoted)
        elif (ROOT / quoted).is_file():
            found.append(quoted)
        elif (file.parent / quoted).is_file():
            found.append(str((file.parent / quoted).relative_to(ROOT)))
    return found


def owners_of(header):
    """The libraries that a header belongs to: the one that has its .cc file; without one, any library of its folder."""
    if handwritten := {name for name, place in HANDWRITTEN.items() if header.startswith(place)}:
        return handwritten
    libraries = [target for target in TARGETS.values() if target.kind == "rm_library"]
    with_source = {target.name for target in libraries if header[:-2] + ".cc" in target.sources}
    folder = str(pathlib.PurePath(header).parent)
    beside = {target.name for target in libraries
              if folder in ({str(pathlib.PurePath(source).parent) for source in target.sources} or {target.folder})}
    return with_source or beside


def needs_of(target):
    """(including file, header, libraries of which one must be in DEPS) for all that the target's own files include. Headers of
    its own, and those that belong to nobody, are read through."""
    seen, waiting, needs = set(), list(target.sources), []
    while waiting:
        name = waiting.pop()
        for header in set(includes_of(name)) - seen:
            owners = owners_of(header)
            if owners and target.name not in owners:
                needs.append((name, header, owners))
                continue
            seen.add(header)
            waiting.append(header)
    return needs


def gaps_in(targets):
    gaps = []
    for target in targets:
        for file, header, owners in needs_of(target):
            if not owners & set(target.deps):
                gaps.append("%s/CMakeLists.txt: %s lacks %s, for %s in %s"
                            % (target.folder, target.name, " or ".join(sorted(owners)), header, file))
    return sorted(gaps)


def test_a_target_names_every_target_whose_headers_it_includes():
    """Tests are left out: what they include is below what they test."""
    targets = [target for target in TARGETS.values() if target.kind != "rm_test"]
    assert len(targets) > 60
    assert gaps_in(targets) == []


def of_product(target):
    """Tests may use what they like."""
    return target.kind != "rm_test" and not any("/testing/" in s or "/test_" in s or "fake_" in s for s in target.sources)


def order_of_folders():
    """Lowest first: the order in which a top folder's CMakeLists.txt adds its folders."""
    order = []
    for top in TOPS:
        text = (ROOT / top / "CMakeLists.txt").read_text()
        names = [name for names in re.findall(r"foreach\(dir ([^)]+)\)", text) for name in names.split()]
        order += [top + "/" + name for name in names] or [top]
    return order


def arrows():
    for target in filter(of_product, TARGETS.values()):
        for dep in target.deps:
            folder = HANDWRITTEN[dep].rstrip("/") if dep in HANDWRITTEN else TARGETS[dep].folder if dep in TARGETS else None
            if folder and target.folder.split("/")[0] in TOPS:
                yield target, dep, folder


def is_upward(folder, used, order):
    top, used_top = folder.split("/")[0], used.split("/")[0]
    if top == "collectives" and used_top == "common":
        return used not in BASE_OF_COLLECTIVES
    if top != used_top:
        return used_top not in TOPS[top]
    if used == "collectives/include/ringmaster":
        return False

    def place(name):
        return max((order.index(known) for known in order if (name + "/").startswith(known + "/")))
    return place(used) > place(folder)


def test_no_target_names_one_above_it():
    order = order_of_folders()
    assert len(order) > 25
    assert ["%s: %s names %s of %s" % (target.folder, target.name, dep, folder)
            for target, dep, folder in arrows()
            if is_upward(target.folder, folder, order)] == []


def test_no_targets_name_each_other():
    unfinished = {target.name: {dep for dep in target.deps if dep in TARGETS} for target in TARGETS.values()}
    while free := [name for name, deps in unfinished.items() if not deps & set(unfinished)]:
        for name in free:
            del unfinished[name]
    assert unfinished == {}


def test_pure_folders_stand_on_pure_ones():
    def pure(folder, name):
        return folder in PURE or name in PURE_TARGETS
    assert [(target.name, dep) for target, dep, folder in arrows()
            if target.kind == "rm_library" and pure(target.folder, target.name) and not pure(folder, dep)] == []


def product_files():
    """As paths from the root; tests may include what they like."""
    for top in TOPS:
        for file in (ROOT / top).rglob("*"):
            name = str(file.relative_to(ROOT))
            test = re.search(r"_test\.cc$|/(testing|sim)/|/(test|fake)_\w+\.\w+$", name)
            if file.suffix in (".h", ".cc") and not test:
                yield name


def folder_of(name):
    return str(pathlib.PurePath(name).parent)


def unit_of(name):
    """A header and its source file together."""
    return str(pathlib.PurePath(name).with_suffix(""))


def includes_between(group):
    """{group: the other groups that its files include}; `group` says where a file belongs."""
    used = collections.defaultdict(set)
    for name in product_files():
        used[group(name)] |= {group(header) for header in includes_of(name)} - {group(name)}
    return used


def circles_in(used):
    """What is left when everything that includes nothing of the rest has been taken away, and everything that nothing of the rest
    includes."""
    left = {name: set(others) & set(used) for name, others in used.items()}
    while True:
        included = set().union(*left.values())
        free = {name for name, others in left.items() if not others or name not in included}
        if not free:
            return left
        left = {name: others - free for name, others in left.items() if name not in free}


def test_no_folders_include_each_other():
    used = includes_between(folder_of)
    assert len(used) > 50
    assert circles_in(used) == {}


def test_no_folder_includes_one_above_it():
    order = order_of_folders()
    used = includes_between(folder_of)
    places = {target.folder for target in TARGETS.values()} | set(HANDWRITTEN.values())
    assert len(places) > 40
    assert ["%s includes %s" % (folder, other) for folder, others in used.items() for other in others
            if other.split("/")[0] in TOPS and not other.startswith("collectives/include")
            and is_upward(folder, other, order)] == []


def test_no_units_include_each_other():
    """Straight or in a circle."""
    used = includes_between(unit_of)
    assert circles_in(used) == {}


def test_the_check_sees_folders_that_include_each_other():
    chain = {"cli": {"page", "api"}, "page": {"model"}, "model": {"api"}, "api": set()}
    assert circles_in(chain) == {}
    assert circles_in({**chain, "model": {"api", "cli"}}) == {"cli": {"page"}, "page": {"model"}, "model": {"cli"}}


def test_the_check_sees_a_missing_dependency():
    planner = TARGETS["ringmaster::planner"]
    without = planner._replace(deps=[dep for dep in planner.deps if dep != "ringmaster::scheduler"])
    assert gaps_in([planner]) == [] and any("ringmaster::scheduler" in gap for gap in gaps_in([without]))


def test_the_check_sees_an_upward_dependency():
    order = order_of_folders()
    assert is_upward("operator/planner", "operator/controllers", order) and is_upward("common/job", "sidecar/app", order)
    assert is_upward("operator/controllers", "operator/app", order) and is_upward("collectives/engine", "common/membership", order)
    assert not is_upward("operator/controllers", "operator/planner", order)
